package filebus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"autopost"
)

const (
	// maxDocument is the largest payload, in bytes; maxNote is the largest state or approval file.
	maxDocument = 1 << 20
	maxNote     = 64 << 10
)

// The names that are taken. Everything else in a folder of jobs is ignored or refused.
var (
	jobName      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	jobFile      = regexp.MustCompile(`^([a-z][a-z0-9_]{0,31})(\.state|\.status)?\.json$`)
	approvalFile = regexp.MustCompile(`^approve-.+\.json$`)
	nonceForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$`)
)

// artifactKinds are the artifacts that are published.
var artifactKinds = map[string]autopost.MediaKind{"video": autopost.MediaVideo, "subtitles": autopost.MediaFile, "thumbnail": autopost.MediaImage}

// errUnfinished means that a file is not a whole JSON document; perhaps it is still being written.
var errUnfinished = errors.New("it is not a JSON object")

// payload is a payload file.
type payload struct {
	JobID    string                     `json:"job_id"`
	Platform string                     `json:"platform"`
	Pointers map[string]json.RawMessage `json:"artifact_pointers"`
}

// state is a state file.
type state struct {
	JobID       string `json:"job_id"`
	Platform    string `json:"platform"`
	Status      string `json:"status"`
	PublishedAt string `json:"published_at"`
	PostID      string `json:"platform_post_id"`
	PostURL     string `json:"post_url,omitempty"`
}

// approval is an approval file.
type approval struct {
	JobID         string `json:"job_id"`
	Platform      string `json:"platform"`
	Approved      *bool  `json:"approved"`
	ApprovedAt    string `json:"approved_at,omitempty"`
	ApprovedBy    string `json:"approved_by,omitempty"`
	Source        string `json:"source,omitempty"`
	Nonce         string `json:"nonce"`
	PayloadDigest string `json:"payload_digest,omitempty"`
	ExpiresAt     string `json:"expires_at,omitempty"`
	Signature     string `json:"signature,omitempty"`
}

// decode reads one JSON object that PostgreSQL can store.
func decode(raw []byte, into any) error {
	trimmed := bytes.TrimSpace(raw)
	if !utf8.Valid(trimmed) || len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		return errUnfinished
	}
	if bytes.Contains(trimmed, []byte(`\u0000`)) || bytes.IndexByte(trimmed, 0) >= 0 {
		return &refusal{"not_storable", "the file must not contain the character U+0000; remove it"}
	}
	decoder := json.NewDecoder(bytes.NewReader(trimmed))
	if err := decoder.Decode(into); err != nil {
		return &refusal{"wrong_type", fmt.Sprintf("a field has a wrong type: %s; correct it", cut(err.Error()))}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return &refusal{"wrong_type", "the file must be one JSON object"}
	}
	return nil
}

// pointer returns the name of an artifact in the root; "" if the payload does not have it.
func (p payload) pointer(job, dist, name string) (string, error) {
	raw, given := p.Pointers[name]
	if !given || string(raw) == "null" {
		return "", nil
	}
	var target string
	if err := json.Unmarshal(raw, &target); err != nil || target == "" {
		return "", &refusal{"wrong_type", fmt.Sprintf("artifact_pointers.%s must be a path or null; correct it", name)}
	}
	resolved := path.Join(dist, job, target)
	if path.IsAbs(target) || strings.ContainsAny(target, "\\\x00") || !filepath.IsLocal(filepath.FromSlash(resolved)) {
		return "", &refusal{"outside_root", fmt.Sprintf("artifact_pointers.%s must be a path inside the root, relative to the folder of the payload, got %q; correct it", name, cut(target))}
	}
	return resolved, nil
}

// stateOf reads a state file. A damaged one has a reason and no state.
func stateOf(raw []byte, job, platform string) (s state, damaged string) {
	if err := decode(raw, &s); err != nil {
		return s, err.Error()
	}
	switch {
	case s.JobID != job || s.Platform != platform:
		return s, fmt.Sprintf("it is of job %q on %q", cut(s.JobID), cut(s.Platform))
	case s.Status != "PUBLISHED":
		return s, fmt.Sprintf("status must be PUBLISHED, got %q", cut(s.Status))
	case s.PostID == "" || len(s.PostID) > 200:
		return s, "platform_post_id must be 1 to 200 characters"
	}
	if _, err := time.Parse(time.RFC3339, s.PublishedAt); err != nil {
		return s, "published_at must be a time with an offset"
	}
	return s, ""
}

// approvalOf reads an approval file and checks its form.
func approvalOf(raw []byte, name string) (a approval, err error) {
	if err := decode(raw, &a); err != nil {
		return a, err
	}
	switch {
	case !jobName.MatchString(a.JobID):
		err = &refusal{"bad_name", fmt.Sprintf("job_id must be 1 to 128 letters, digits, dots, dashes and underscores, got %q", cut(a.JobID))}
	case a.Approved == nil:
		err = &refusal{"wrong_type", "approved must be true or false"}
	case !nonceForm.MatchString(a.Nonce):
		err = &refusal{"bad_nonce", "nonce must be 1 to 128 letters, digits and . _ : @ + -"}
	case name != fmt.Sprintf("approve-%s-%s-%s.json", a.JobID, a.Platform, a.Nonce):
		err = &refusal{"name_mismatch", fmt.Sprintf("the file must be named approve-%s-%s-%s.json", a.JobID, cut(a.Platform), a.Nonce)}
	}
	return a, err
}

// signed is the text that the signature of an approval covers.
func (a approval) signed() string {
	return strings.Join([]string{a.JobID, a.Platform, fmt.Sprint(a.Approved != nil && *a.Approved), a.PayloadDigest, a.Nonce, a.ExpiresAt}, "\n")
}

// mark identifies the content of a file without reading it.
func mark(info fs.FileInfo) string {
	if info == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", info.Size(), info.ModTime().UnixNano())
}
