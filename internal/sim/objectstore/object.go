package objectstore

import (
	"crypto/md5" //nolint:gosec // S3's entity tags are MD5
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost/internal/sim"
)

const maxKeys = 1000

func sumOf(body []byte) string {
	sum := md5.Sum(body) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

func (s *Server) makeBucket(c *call) (sim.Reply, *refusal) {
	if !bucketForm.MatchString(c.name) {
		return sim.Reply{}, &refusal{http.StatusBadRequest, "InvalidBucketName", "The specified bucket is not valid."}
	}
	s.addBucket(c.name)
	return sim.Reply{Status: http.StatusOK, Header: http.Header{"Location": {"/" + c.name}}}, nil
}

func (s *Server) headBucket(*call) (sim.Reply, *refusal) {
	return sim.Reply{Status: http.StatusOK}, nil
}

func (s *Server) put(c *call) (sim.Reply, *refusal) {
	if given := c.r.Header.Get("Content-Md5"); given != "" {
		sum, err := base64.StdEncoding.DecodeString(given)
		if err != nil || hex.EncodeToString(sum) != sumOf(c.body) {
			return sim.Reply{}, &refusal{http.StatusBadRequest, "BadDigest", "The Content-MD5 you specified did not match what we received."}
		}
	}
	if c.r.Header.Get("If-None-Match") == "*" && c.bucket.objects[c.key] != nil {
		return sim.Reply{}, &refusal{http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"}
	}
	o := &object{body: c.body, contentType: c.r.Header.Get("Content-Type"), etag: `"` + sumOf(c.body) + `"`, modified: time.Now(), meta: metaOf(c.r.Header)}
	c.bucket.objects[c.key] = o
	c.log.Media = []sim.Media{{Kind: "object", Filename: c.key, Size: int64(len(c.body)), Digest: sim.Digest(c.body), Uploaded: true}}
	return sim.Reply{Status: http.StatusOK, Header: http.Header{"Etag": {o.etag}}}, nil
}

func metaOf(header http.Header) http.Header {
	meta := http.Header{}
	for name, values := range header {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			meta[name] = values
		}
	}
	return meta
}

func (s *Server) get(c *call) (sim.Reply, *refusal) {
	o := c.bucket.objects[c.key]
	if o == nil {
		return sim.Reply{}, &refusal{http.StatusNotFound, "NoSuchKey", "The specified key does not exist."}
	}
	header := maps.Clone(o.meta)
	header.Set("Etag", o.etag)
	header.Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	header.Set("Accept-Ranges", "bytes")
	reply := sim.Reply{Status: http.StatusOK, ContentType: o.contentType, Header: header, Body: o.body}
	if reply.ContentType == "" {
		reply.ContentType = "binary/octet-stream"
	}
	if c.r.Header.Get("If-None-Match") == o.etag {
		reply.Status, reply.Body = http.StatusNotModified, nil
		return reply, nil
	}
	asked := c.r.Header.Get("Range")
	if asked == "" {
		return reply, nil
	}
	from, to, ok := readRange(asked, int64(len(o.body)))
	if !ok {
		return sim.Reply{}, &refusal{http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable"}
	}
	reply.Status, reply.Body = http.StatusPartialContent, o.body[from:to+1]
	header.Set("Content-Range", "bytes "+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(to, 10)+"/"+strconv.Itoa(len(o.body)))
	return reply, nil
}

// readRange parses a range of bytes: from-to, from-, or -count.
func readRange(header string, size int64) (from, to int64, ok bool) {
	first, last, cut := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	if !cut || !strings.HasPrefix(header, "bytes=") {
		return 0, 0, false
	}
	if first == "" {
		n, err := strconv.ParseInt(last, 10, 64)
		return max(0, size-n), size - 1, err == nil && n > 0 && size > 0
	}
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || from >= size {
		return 0, 0, false
	}
	if last == "" {
		return from, size - 1, true
	}
	to, err = strconv.ParseInt(last, 10, 64)
	return from, min(to, size-1), err == nil && to >= from
}

func (s *Server) remove(c *call) (sim.Reply, *refusal) {
	delete(c.bucket.objects, c.key)
	return sim.Reply{Status: http.StatusNoContent}, nil
}

// listing is the answer to ListObjectsV2.
type listing struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name                  string
	Prefix                string
	Delimiter             string `xml:",omitempty"`
	MaxKeys               int
	KeyCount              int
	IsTruncated           bool
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listed
	CommonPrefixes        []commonPrefix
}

type listed struct {
	Key          string
	LastModified string
	ETag         string
	Size         int
	StorageClass string
}

type commonPrefix struct{ Prefix string }

func (s *Server) list(c *call) (sim.Reply, *refusal) {
	q := c.r.URL.Query()
	most := maxKeys
	if given := q.Get("max-keys"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 {
			return sim.Reply{}, &refusal{http.StatusBadRequest, "InvalidArgument", "Argument max-keys must be an integer from 0 on"}
		}
		most = min(n, maxKeys)
	}
	after := q.Get("start-after")
	token := q.Get("continuation-token")
	if token != "" {
		last, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return sim.Reply{}, &refusal{http.StatusBadRequest, "InvalidArgument", "The continuation token provided is incorrect"}
		}
		after = string(last)
	}
	page := listing{Name: c.name, Prefix: q.Get("prefix"), Delimiter: q.Get("delimiter"), MaxKeys: most, ContinuationToken: token}
	last := ""
	for _, key := range slices.Sorted(maps.Keys(c.bucket.objects)) {
		shown := key
		if rest, ok := strings.CutPrefix(key, page.Prefix); !ok {
			continue
		} else if folder, _, deeper := strings.Cut(rest, page.Delimiter); deeper && page.Delimiter != "" {
			shown = page.Prefix + folder + page.Delimiter
		}
		if shown <= after || shown == last {
			continue
		}
		if page.KeyCount == most {
			page.IsTruncated = true
			page.NextContinuationToken = base64.URLEncoding.EncodeToString([]byte(last))
			break
		}
		last = shown
		page.KeyCount++
		if shown != key {
			page.CommonPrefixes = append(page.CommonPrefixes, commonPrefix{shown})
			continue
		}
		o := c.bucket.objects[key]
		page.Contents = append(page.Contents, listed{key, o.modified.UTC().Format("2006-01-02T15:04:05.000Z"), o.etag, len(o.body), "STANDARD"})
	}
	return encode(http.StatusOK, page), nil
}
