package telegram

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"image"
	_ "image/gif"  // sizes of uploaded photos
	_ "image/jpeg" // sizes of uploaded photos
	_ "image/png"  // sizes of uploaded photos
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"autopost/internal/sim"
)

const (
	maxParameters = 1 << 20   // bytes of all parameters but files
	maxFile       = 50 << 20  // bytes of one uploaded file
	maxRequest    = 600 << 20 // bytes read of a request at all
	imageHead     = 256 << 10 // bytes kept to read an image's size from
)

// arguments are the parameters of a call in any encoding. Objects and arrays are JSON texts.
type arguments struct {
	values  map[string]string
	uploads map[string]upload
}

// upload is a file part of a multipart request.
type upload struct {
	sim.Media
	// width and height are those of an image in pixels; 0 if they are unknown.
	width, height int
	image         bool
}

func (a arguments) describedUploads() []sim.Media {
	var names []string
	for name := range a.uploads {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []sim.Media
	for _, name := range names {
		out = append(out, a.uploads[name].Media)
	}
	return out
}

// object decodes a parameter that is an object or an array. It reports whether the parameter is given.
func (a arguments) object(name string, into any) (bool, error) {
	text := a.values[name]
	if text == "" {
		return false, nil
	}
	return true, json.Unmarshal([]byte(text), into)
}

// video reads the dimensions of a video. A value that is not a number is 0.
func (a arguments) video() Video {
	number := func(name string) int {
		n, err := strconv.Atoi(a.values[name])
		if err != nil {
			return 0
		}
		return n
	}
	return Video{
		Width: number("width"), Height: number("height"), Duration: number("duration"),
		Streaming: a.values["supports_streaming"] == "true",
	}
}

// readArguments reads the whole body. A JSON or form body with a syntax error has no parameters, as on the
// real server.
func readArguments(r *http.Request, x *sim.Exchange) (arguments, *refusal) {
	a := arguments{values: map[string]string{}, uploads: map[string]upload{}}
	body := io.LimitReader(x.Body(), maxRequest)
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		return a, &refusal{code: http.StatusMethodNotAllowed, description: "Method Not Allowed: unsupported request type"}
	}
	a.form(r.URL.Query())
	contentType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		contentType = ""
	}
	if contentType == "multipart/form-data" {
		return a, a.multipart(multipart.NewReader(body, params["boundary"]), x)
	}
	raw, err := io.ReadAll(io.LimitReader(body, maxParameters+1))
	if err != nil {
		return a, badRequest("can't read the request")
	}
	if len(raw) > maxParameters {
		_, _ = io.Copy(io.Discard, body) // else the client cannot read the answer
		return a, &refusal{code: http.StatusRequestEntityTooLarge, description: "Request Entity Too Large: too much parameters"}
	}
	switch contentType {
	case "application/json":
		a.json(raw, x)
	case "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(raw))
		if err != nil {
			x.Note("the form body cannot be read: " + err.Error())
		}
		a.form(values)
	default:
		if len(raw) > 0 {
			x.Note("a body of content type " + contentType + " is ignored")
		}
	}
	return a, nil
}

func (a arguments) form(values url.Values) {
	for name := range values {
		a.values[name] = values.Get(name)
	}
}

func (a arguments) json(raw []byte, x *sim.Exchange) {
	if len(raw) == 0 {
		return
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		x.Note("the JSON body cannot be read: " + err.Error())
		return
	}
	for name, value := range fields {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		if text != "null" {
			a.values[name] = text
		}
	}
}

func (a arguments) multipart(reader *multipart.Reader, x *sim.Exchange) *refusal {
	var refused *refusal
	space := int64(maxParameters)
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return refused
		}
		if err != nil {
			return badRequest("can't parse form data: " + err.Error())
		}
		if part.FormName() == "" {
			return badRequest("field name in multipart/form-data not found")
		}
		if part.FileName() != "" {
			file, tooBig, err := readUpload(part)
			if err != nil {
				return badRequest("can't read the request")
			}
			if tooBig {
				refused = &refusal{code: http.StatusRequestEntityTooLarge, description: "Request Entity Too Large"}
			}
			a.uploads[part.FormName()] = file
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, space+1))
		if err != nil {
			return badRequest("can't read the request")
		}
		if space -= int64(len(value)); space < 0 {
			return &refusal{code: http.StatusRequestEntityTooLarge, description: "Request Entity Too Large: too much parameters in form data"}
		}
		a.values[part.FormName()] = string(value)
		if !strings.EqualFold(part.Header.Get("Content-Transfer-Encoding"), "") {
			x.Note("Content-Transfer-Encoding of " + part.FormName() + " is ignored")
		}
	}
}

// readUpload computes the digest and the size of a file part. It does not store the content.
func readUpload(part *multipart.Part) (file upload, tooBig bool, err error) {
	digest := sha256.New()
	head, err := io.ReadAll(io.TeeReader(io.LimitReader(part, imageHead), digest))
	if err != nil {
		return upload{}, false, err
	}
	rest, err := io.Copy(digest, part)
	if err != nil {
		return upload{}, false, err
	}
	file.Media = sim.Media{
		Kind: "file", Size: int64(len(head)) + rest, Filename: part.FileName(),
		Digest: hex.EncodeToString(digest.Sum(nil)), Uploaded: true,
	}
	if config, _, err := image.DecodeConfig(bytes.NewReader(head)); err == nil {
		file.image, file.width, file.height = true, config.Width, config.Height
	} else if len(head) > 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP" {
		file.image = true // the standard library cannot read its size
	}
	return file, file.Size > maxFile, nil
}
