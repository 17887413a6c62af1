package web

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// stall is the longest pause between two parts of an upload.
const stall = time.Minute

// parts are the parts of a form with files that were not read yet. A file is never kept in memory or on disk.
type parts struct {
	reader *multipart.Reader
	// file is the next file; nil after the last one.
	file *multipart.Part
	// left is how many bytes the fields may still have.
	left int64
}

// hasFiles reports whether the form of a post comes with its files. Other forms are read as a whole.
func hasFiles(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/compose") && r.Method == http.MethodPost && strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data")
}

func (v *view) hasFiles() bool { return hasFiles(v.r) }

// readParts reads the fields of a form with files up to its first file, so that its token is checked before a file is
// read. It answers and returns false if the form cannot be read.
func (v *view) readParts() bool {
	v.r.Body = io.NopCloser(rest.Slow(v.w, v.r.Body, stall))
	reader, err := v.r.MultipartReader()
	if err != nil {
		v.fail(problem.WrongRequest.Says("%s", v.t("error.form")))
		return false
	}
	v.form, v.parts = url.Values{}, &parts{reader: reader, left: maxForm}
	if err := v.nextFile(); err != nil {
		v.fail(problem.TooLarge.Says("%s", v.t("error.form")))
		return false
	}
	return true
}

var errFields = errors.New("the fields of the form are too large")

// nextFile reads fields up to the next file.
func (v *view) nextFile() error {
	v.parts.file = nil
	for {
		part, err := v.parts.reader.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if part.FileName() != "" {
			v.parts.file = part
			return nil
		}
		value, err := io.ReadAll(io.LimitReader(part, v.parts.left+1))
		if err != nil {
			return err
		}
		if v.parts.left -= int64(len(value) + len(part.FormName())); v.parts.left < 0 {
			return errFields
		}
		v.form.Add(part.FormName(), string(value))
	}
}

// eachFile gives all files of the form to store, and reads the fields after them.
func (v *view) eachFile(store func(file *multipart.Part) error) error {
	if v.parts == nil {
		return nil
	}
	for v.parts.file != nil {
		if err := store(v.parts.file); err != nil {
			return err
		}
		if err := v.nextFile(); err != nil {
			return problem.TooLarge.Says("%s", v.t("error.form"))
		}
	}
	return nil
}
