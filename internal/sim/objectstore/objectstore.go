// Package objectstore simulates an S3 bucket with path-style addresses, as far as a media store needs
// it: objects with ranges and conditions, lists, and multipart uploads. Every request must have a
// version 4 signature.
//
// Not implemented: presigned addresses, copies, versions, access rights, signed trailers.
package objectstore

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"autopost/internal/sim"
)

// Platform is the simulator's name in the log and in fault rules.
const Platform = "s3"

// maxBody bounds the body of a request, in bytes.
const maxBody = 64 << 20

// Options configure a Server.
type Options struct {
	// AnyKey accepts every access key; the secret of an unknown key K is K followed by "-secret".
	// Buckets are created at their first use.
	AnyKey bool
}

// Server is the simulated store, an http.Handler for /{bucket}/{key}.
type Server struct {
	core *sim.Core
	opts Options

	mu      sync.Mutex
	keys    map[string]string
	buckets map[string]*bucket
	serial  int
}

type bucket struct {
	objects map[string]*object
	uploads map[string]*upload
}

type object struct {
	body        []byte
	contentType string
	etag        string
	modified    time.Time
	meta        http.Header // x-amz-meta-…
}

// New returns a store without keys and buckets.
func New(core *sim.Core, opts Options) *Server {
	return &Server{core: core, opts: opts, keys: map[string]string{}, buckets: map[string]*bucket{}}
}

// AddKey adds an access key.
func (s *Server) AddKey(id, secret string) error {
	if id == "" || secret == "" {
		return errors.New("s3 key must have an id and a secret")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[id] = secret
	return nil
}

var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// AddBucket adds an empty bucket, unless it exists.
func (s *Server) AddBucket(name string) error {
	if !bucketForm.MatchString(name) {
		return errors.New("s3 bucket name must be 3 to 63 lower-case letters, digits, dots or dashes")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addBucket(name)
	return nil
}

func (s *Server) addBucket(name string) *bucket {
	if s.buckets[name] == nil {
		s.buckets[name] = &bucket{objects: map[string]*object{}, uploads: map[string]*upload{}}
	}
	return s.buckets[name]
}

// Object returns the object with a key in a bucket.
func (s *Server) Object(bucketName, key string) (body []byte, contentType string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucketName]
	if b == nil || b.objects[key] == nil {
		return nil, "", false
	}
	return b.objects[key].body, b.objects[key].contentType, true
}

// Reset empties all buckets. Buckets and keys stay.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.buckets {
		clear(b.objects)
		clear(b.uploads)
	}
}

// refusal is a failed call.
type refusal struct {
	status  int
	code    string
	message string
}

// call is one parsed request.
type call struct {
	r      *http.Request
	bucket *bucket
	name   string
	key    string
	body   []byte
	log    *sim.Entry
}

// operation returns the S3 operation of a request, from its method, its address and its query.
func operation(r *http.Request, key string) string {
	q, on := r.URL.Query(), "Bucket"
	if key != "" {
		on = "Object"
	}
	for _, chooses := range []string{"uploads", "uploadId", "list-type", "location"} {
		if q.Has(chooses) {
			return r.Method + " " + on + "?" + chooses
		}
	}
	if r.Header.Get("X-Amz-Copy-Source") != "" {
		return "COPY " + on
	}
	return r.Method + " " + on
}

var operations = map[string]func(*Server, *call) (sim.Reply, *refusal){
	"PUT Bucket":             (*Server).makeBucket,
	"HEAD Bucket":            (*Server).headBucket,
	"GET Bucket?list-type":   (*Server).list,
	"PUT Object":             (*Server).put,
	"GET Object":             (*Server).get,
	"HEAD Object":            (*Server).get,
	"DELETE Object":          (*Server).remove,
	"POST Object?uploads":    (*Server).beginUpload,
	"PUT Object?uploadId":    (*Server).putPart,
	"POST Object?uploadId":   (*Server).completeUpload,
	"DELETE Object?uploadId": (*Server).abortUpload,
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	op := operation(r, key)
	x := s.core.Begin(w, r, sim.Entry{Platform: Platform, Method: op, Chat: name, Credential: sim.CredentialHash(accessKey(r))})
	if x.Cut() {
		return
	}
	body, err := io.ReadAll(io.LimitReader(x.Body(), maxBody+1))
	c := &call{r: r, name: name, key: key, body: body, log: x.Entry()}
	x.Entry().Title = key
	x.Arrive()
	x.Answer(func() sim.Reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case err != nil:
			return refuse(&refusal{http.StatusBadRequest, "IncompleteBody", "You did not provide the number of bytes specified by the Content-Length HTTP header."})
		case len(body) > maxBody:
			return refuse(&refusal{http.StatusBadRequest, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size."})
		}
		reply, refused := s.answer(c, op)
		if refused != nil {
			return refuse(refused)
		}
		reply.Accepted = true
		return reply
	}, refuseFault)
}

func (s *Server) answer(c *call, op string) (sim.Reply, *refusal) {
	if refused := s.verify(c); refused != nil {
		return sim.Reply{}, refused
	}
	run, known := operations[op]
	if !known {
		return sim.Reply{}, &refusal{http.StatusNotImplemented, "NotImplemented", "A header or a parameter you provided implies functionality that is not implemented: " + op}
	}
	c.bucket = s.buckets[c.name]
	if c.bucket == nil && s.opts.AnyKey && bucketForm.MatchString(c.name) {
		c.bucket = s.addBucket(c.name)
	}
	if c.bucket == nil && op != "PUT Bucket" {
		return sim.Reply{}, &refusal{http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist"}
	}
	return run(s, c)
}

func refuse(r *refusal) sim.Reply {
	reply := encode(r.status, struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: r.code, Message: r.message})
	reply.Reason = r.code + ": " + r.message
	return reply
}

// refuseFault converts a scripted fault to S3's error form; Code is S3's error code.
func refuseFault(f sim.Fault) sim.Reply {
	r := refusal{f.Status, f.Code, f.Description}
	if r.code == "" {
		r.code = map[int]string{
			http.StatusForbidden: "AccessDenied", http.StatusNotFound: "NoSuchKey", http.StatusServiceUnavailable: "SlowDown",
		}[f.Status]
	}
	if r.code == "" {
		r.code = "InternalError"
	}
	if r.message == "" {
		r.message = http.StatusText(f.Status)
	}
	return refuse(&r)
}

func encode(status int, v any) sim.Reply {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	if err := xml.NewEncoder(&b).Encode(v); err != nil {
		// All callers pass structs of strings and numbers.
		panic("s3 simulator: " + err.Error())
	}
	return sim.Reply{Status: status, ContentType: "application/xml", Body: b.Bytes()}
}
