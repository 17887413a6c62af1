package objectstore

import (
	"bytes"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"autopost/internal/sim"
)

const (
	minPart  = 5 << 20 // bytes, except for the last part
	maxParts = 10_000
)

// upload is an object that is uploaded in parts.
type upload struct {
	key         string
	contentType string
	meta        http.Header
	parts       map[int][]byte
}

func (s *Server) beginUpload(c *call) (sim.Reply, *refusal) {
	s.serial++
	id := sim.Digest(fmt.Appendf(nil, "upload %d %d", s.serial, time.Now().UnixNano()))[:40]
	c.bucket.uploads[id] = &upload{key: c.key, contentType: c.r.Header.Get("Content-Type"), meta: metaOf(c.r.Header), parts: map[int][]byte{}}
	return encode(http.StatusOK, struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: c.name, Key: c.key, UploadId: id}), nil
}

func (c *call) upload() (*upload, *refusal) {
	u := c.bucket.uploads[c.r.URL.Query().Get("uploadId")]
	if u == nil || u.key != c.key {
		return nil, &refusal{http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed."}
	}
	return u, nil
}

func (s *Server) putPart(c *call) (sim.Reply, *refusal) {
	u, refused := c.upload()
	if refused != nil {
		return sim.Reply{}, refused
	}
	number, err := strconv.Atoi(c.r.URL.Query().Get("partNumber"))
	if err != nil || number < 1 || number > maxParts {
		return sim.Reply{}, &refusal{http.StatusBadRequest, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive"}
	}
	u.parts[number] = c.body
	return sim.Reply{Status: http.StatusOK, Header: http.Header{"Etag": {`"` + sumOf(c.body) + `"`}}}, nil
}

// completeUpload joins the named parts into an object.
func (s *Server) completeUpload(c *call) (sim.Reply, *refusal) {
	u, refused := c.upload()
	if refused != nil {
		return sim.Reply{}, refused
	}
	var named struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if xml.Unmarshal(c.body, &named) != nil || len(named.Part) == 0 {
		return sim.Reply{}, &refusal{http.StatusBadRequest, "MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema"}
	}
	var whole, sums bytes.Buffer
	before := 0
	for i, part := range named.Part {
		content, here := u.parts[part.PartNumber]
		sum := sumOf(content)
		switch {
		case part.PartNumber <= before:
			return sim.Reply{}, &refusal{http.StatusBadRequest, "InvalidPartOrder", "The list of parts was not in ascending order."}
		case !here || strings.Trim(part.ETag, `"`) != sum:
			return sim.Reply{}, &refusal{http.StatusBadRequest, "InvalidPart", "One or more of the specified parts could not be found."}
		case i < len(named.Part)-1 && len(content) < minPart:
			return sim.Reply{}, &refusal{http.StatusBadRequest, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size"}
		}
		before = part.PartNumber
		whole.Write(content)
		raw, err := hex.DecodeString(sum)
		if err != nil {
			panic("s3 simulator: " + err.Error()) // sumOf returns hexadecimal digits
		}
		sums.Write(raw)
	}
	o := &object{
		body: whole.Bytes(), contentType: u.contentType, meta: u.meta, modified: time.Now(),
		etag: fmt.Sprintf(`"%s-%d"`, sumOf(sums.Bytes()), len(named.Part)),
	}
	c.bucket.objects[c.key] = o
	delete(c.bucket.uploads, c.r.URL.Query().Get("uploadId"))
	c.log.Media = []sim.Media{{Kind: "object", Filename: c.key, Size: int64(len(o.body)), Digest: sim.Digest(o.body), Uploaded: true}}
	return encode(http.StatusOK, struct {
		XMLName           xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: c.name, Key: c.key, ETag: o.etag}), nil
}

func (s *Server) abortUpload(c *call) (sim.Reply, *refusal) {
	if _, refused := c.upload(); refused != nil {
		return sim.Reply{}, refused
	}
	delete(c.bucket.uploads, c.r.URL.Query().Get("uploadId"))
	return sim.Reply{Status: http.StatusNoContent}, nil
}
