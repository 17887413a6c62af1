package twitter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"time"

	"autopost/internal/sim"
)

const (
	maxChunk    = 5 << 20 // bytes
	maxSegments = 1000
	headSize    = 512
)

// chunks assembles an upload. It hashes content in order and keeps only segments that arrive early.
type chunks struct {
	sum   hash.Hash
	size  int64
	head  []byte
	next  int
	early map[int][]byte
	// twice reports that a segment was repeated.
	twice bool
}

func (u *chunks) add(index int, content []byte) {
	if u.early == nil {
		u.early, u.sum = map[int][]byte{}, sha256.New()
	}
	if _, known := u.early[index]; known || index < u.next {
		u.twice = true
		return
	}
	u.early[index] = bytes.Clone(content)
	for {
		content, here := u.early[u.next]
		if !here {
			return
		}
		delete(u.early, u.next)
		u.next++
		u.size += int64(len(content))
		u.head = append(u.head, content[:min(len(content), headSize-len(u.head))]...)
		_, _ = u.sum.Write(content) // a hash never fails
	}
}

func (u *chunks) digest() string {
	if u.sum == nil {
		return ""
	}
	return hex.EncodeToString(u.sum.Sum(nil))
}

func (s *Server) initialize(c *call) (outcome, *problem) {
	var body struct {
		MediaType        string   `json:"media_type"`
		TotalBytes       int64    `json:"total_bytes"`
		MediaCategory    string   `json:"media_category"`
		AdditionalOwners []string `json:"additional_owners"`
		Shared           bool     `json:"shared"`
	}
	if refused := c.decode(&body); refused != nil {
		return outcome{}, refused
	}
	if refused := fits(body.MediaCategory, body.MediaType, body.TotalBytes); refused != nil {
		return outcome{}, refused
	}
	m := s.newMedium(c, body.MediaCategory, body.MediaType)
	m.shared, m.total = body.AdditionalOwners, body.TotalBytes
	return outcome{body: map[string]any{"data": map[string]any{
		"id": m.id, "media_key": m.key(), "expires_after_secs": s.core.Pace.Seconds(mediaLife),
	}}}, nil
}

func (s *Server) newMedium(c *call, kind, mediaType string) *medium {
	m := &medium{
		id: s.newID(), owner: c.user, category: kind, mediaType: mediaType, expires: time.Now().Add(s.core.Pace.Of(mediaLife)),
	}
	s.media[m.id] = m
	return m
}

// upload is a body with content, as a multipart form or as JSON.
type upload struct {
	segment  string
	kind     string
	fileType string
	name     string
	content  []byte
}

// readUpload reads a body of either form. Other fields are errors.
func (c *call) readUpload(fields ...string) (upload, *problem) {
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" {
		return readParts(multipart.NewReader(bytes.NewReader(c.body), params["boundary"]), fields)
	}
	var body struct {
		Media        []byte `json:"media"`
		SegmentIndex *int   `json:"segment_index"`
		Category     string `json:"media_category"`
		MediaType    string `json:"media_type"`
	}
	if refused := c.decode(&body); refused != nil {
		return upload{}, refused
	}
	up := upload{content: body.Media, kind: body.Category, fileType: body.MediaType}
	if body.SegmentIndex != nil {
		up.segment = strconv.Itoa(*body.SegmentIndex)
	}
	return up, nil
}

func readParts(reader *multipart.Reader, fields []string) (up upload, refused *problem) {
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return up, nil
		}
		if err != nil {
			return up, invalid("The multipart body cannot be read.", "")
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return up, invalid("The multipart body cannot be read.", "")
		}
		name := part.FormName()
		if !slices.Contains(fields, name) {
			return up, invalid("$."+name+": is not defined in the schema and the schema does not allow additional properties", "")
		}
		switch name {
		case "media":
			up.content, up.name = content, part.FileName()
			if up.fileType == "" {
				up.fileType = part.Header.Get("Content-Type")
			}
		case "segment_index":
			up.segment = string(content)
		case "media_category":
			up.kind = string(content)
		case "media_type":
			up.fileType = string(content)
		}
	}
}

func (s *Server) appendChunk(c *call) (outcome, *problem) {
	m, refused := s.own(c, c.id)
	if refused != nil {
		return outcome{}, refused
	}
	up, refused := c.readUpload("media", "segment_index")
	if refused != nil {
		return outcome{}, refused
	}
	c.log.Media = []sim.Media{{Kind: m.class(), ID: m.id, Size: int64(len(up.content)), Digest: sim.Digest(up.content), Uploaded: true}}
	index, err := strconv.Atoi(up.segment)
	switch {
	case err != nil || index < 0 || index >= maxSegments:
		return outcome{}, invalid("$.segment_index: must be from 0 to 999", "segment_index", up.segment)
	case len(up.content) == 0:
		return outcome{}, invalid("$.media: is missing but it is required", "media")
	case len(up.content) > maxChunk:
		return outcome{}, named("too-large")
	case m.finalized:
		return outcome{}, invalid("The upload is finalized.", "id", m.id)
	}
	m.chunks.add(index, up.content)
	return outcome{body: map[string]any{"data": map[string]any{"expires_at": m.expires.Unix()}}}, nil
}

func (s *Server) finalize(c *call) (outcome, *problem) {
	m, refused := s.own(c, c.id)
	if refused != nil {
		return outcome{}, refused
	}
	switch {
	case m.finalized:
		return outcome{body: m.show()}, nil
	case m.chunks.twice:
		return outcome{}, invalid("A segment was uploaded more than once.", "id", m.id)
	case len(m.chunks.early) > 0 || m.chunks.next == 0:
		return outcome{}, invalid("Segments do not add up to the provided total file size: a segment is missing.", "id", m.id)
	case m.chunks.size != m.total:
		return outcome{}, invalid("Segments do not add up to the provided total file size.", "id", m.id)
	}
	if refused := s.settled(m); refused != nil {
		return outcome{}, refused
	}
	c.log.Media = []sim.Media{m.described()}
	return outcome{body: m.show()}, nil
}

// simpleUpload receives an image in one request.
func (s *Server) simpleUpload(c *call) (outcome, *problem) {
	up, refused := c.readUpload("media", "media_category", "media_type", "additional_owners", "shared")
	if refused != nil {
		return outcome{}, refused
	}
	c.log.Media = []sim.Media{{Kind: "photo", Size: int64(len(up.content)), Digest: sim.Digest(up.content), Filename: up.name, Uploaded: true}}
	if up.fileType == "" || up.fileType == "application/octet-stream" {
		up.fileType = http.DetectContentType(up.content)
	}
	if up.kind != "tweet_image" {
		return outcome{}, invalid("$.media_category: only images can be uploaded in one request", "media_category", up.kind)
	}
	if int64(len(up.content)) > categories[up.kind].size {
		return outcome{}, named("too-large")
	}
	if refused := fits(up.kind, up.fileType, int64(len(up.content))); refused != nil {
		return outcome{}, refused
	}
	m := s.newMedium(c, up.kind, up.fileType)
	m.chunks.add(0, up.content)
	if refused := s.settled(m); refused != nil {
		delete(s.media, m.id)
		return outcome{}, refused
	}
	return outcome{body: m.show()}, nil
}
