package objectstore_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim"
	"autopost/internal/sim/objectstore"
)

// The keys of the examples in Amazon's documentation, which were never valid.
const (
	keyID  = "AKIAIOSFODNN7EXAMPLE"
	secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

type fixture struct {
	*objectstore.Server
	t    *testing.T
	core *sim.Core
}

func newFixture(t *testing.T) fixture {
	core := sim.NewCore(0)
	f := fixture{objectstore.New(core, objectstore.Options{}), t, core}
	require.NoError(t, f.AddKey(keyID, secret))
	require.NoError(t, f.AddBucket("media"))
	return f
}

func (f fixture) serve(request *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, request)
	return w
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func mac(key, text string) string {
	m := hmac.New(sha256.New, []byte(key))
	_, _ = m.Write([]byte(text))
	return string(m.Sum(nil))
}

// signed returns a correctly signed request. The headers are pairs.
func signed(method, target, body string, headers ...string) *http.Request {
	request := httptest.NewRequest(method, target, strings.NewReader(body))
	at := time.Now().UTC()
	request.Header.Set("X-Amz-Date", at.Format("20060102T150405Z"))
	request.Header.Set("X-Amz-Content-Sha256", hash(body))
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	query := strings.ReplaceAll(request.URL.Query().Encode(), "+", "%20")
	content := request.Header.Get("X-Amz-Content-Sha256")
	canonical := fmt.Sprintf("%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n\nhost;x-amz-content-sha256;x-amz-date\n%s",
		method, request.URL.EscapedPath(), query, request.Host, content, request.Header.Get("X-Amz-Date"), content)
	scope := at.Format("20060102") + "/eu-central-1/s3/aws4_request"
	key := "AWS4" + secret
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	signature := hex.EncodeToString([]byte(mac(key, "AWS4-HMAC-SHA256\n"+request.Header.Get("X-Amz-Date")+"\n"+scope+"\n"+hash(canonical))))
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+keyID+"/"+scope+", SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="+signature)
	return request
}

func (f fixture) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	return f.serve(signed(method, target, body, headers...))
}

func (f fixture) refused(w *httptest.ResponseRecorder, status int, code string) {
	f.t.Helper()
	var got struct{ Code, Message string }
	require.NoError(f.t, xml.Unmarshal(w.Body.Bytes(), &got), "%s", w.Body)
	require.Equal(f.t, status, w.Code, "%s", w.Body)
	require.Equal(f.t, code, got.Code)
	require.NotEmpty(f.t, got.Message)
}

// The examples of Amazon's documentation: a whole request, and one in signed chunks.
func TestSignaturesOfTheDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)))
		f := newFixture(t)
		request := httptest.NewRequest(http.MethodGet, "/test.txt", nil)
		request.Host = "examplebucket.s3.amazonaws.com"
		for name, value := range map[string]string{
			"Range": "bytes=0-9", "X-Amz-Date": "20130524T000000Z", "X-Amz-Content-Sha256": hash(""),
			"Authorization": "AWS4-HMAC-SHA256 Credential=" + keyID + "/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date," +
				"Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
		} {
			request.Header.Set(name, value)
		}
		f.refused(f.serve(request), 501, "NotImplemented")
		request.Header.Set("Range", "bytes=0-8")
		f.refused(f.serve(request), 403, "SignatureDoesNotMatch")

		require.NoError(t, f.AddBucket("examplebucket"))
		chunk := func(size int, signature string) string {
			return fmt.Sprintf("%x;chunk-signature=%s\r\n%s\r\n", size, signature, strings.Repeat("a", size))
		}
		last := "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"
		put := func(last string) *httptest.ResponseRecorder {
			body := chunk(65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648") +
				chunk(1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497") + chunk(0, last)
			request := httptest.NewRequest(http.MethodPut, "/examplebucket/chunkObject.txt", strings.NewReader(body))
			request.Host = "s3.amazonaws.com"
			for name, value := range map[string]string{
				"Content-Encoding": "aws-chunked", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY", "X-Amz-Date": "20130524T000000Z",
				"X-Amz-Content-Sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "X-Amz-Decoded-Content-Length": "66560",
				"Authorization": "AWS4-HMAC-SHA256 Credential=" + keyID + "/20130524/us-east-1/s3/aws4_request," +
					"SignedHeaders=content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class," +
					"Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
			} {
				request.Header.Set(name, value)
			}
			return f.serve(request)
		}
		require.Equal(t, 200, put(last).Code)
		body, _, _ := f.Object("examplebucket", "chunkObject.txt")
		require.Equal(t, strings.Repeat("a", 66560), string(body))
		f.refused(put(strings.Repeat("0", 64)), 403, "SignatureDoesNotMatch")
	})
}

func TestInvalidSignaturesAreRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.refused(f.serve(httptest.NewRequest(http.MethodGet, "/media/a", nil)), 403, "AccessDenied")
		tampered := signed("PUT", "/media/a", "content")
		tampered.Header.Set("X-Amz-Content-Sha256", hash("else"))
		f.refused(f.serve(tampered), 403, "SignatureDoesNotMatch")
		f.refused(f.do("PUT", "/media/a", "content", "X-Amz-Content-Sha256", hash("else")), 400, "XAmzContentSHA256Mismatch")
		require.Equal(t, 200, f.do("PUT", "/media/a", "content", "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD").Code)
		other := signed("GET", "/media/a", "")
		other.Header.Set("Authorization", strings.Replace(other.Header.Get("Authorization"), keyID, "NOBODY", 1))
		f.refused(f.serve(other), 403, "InvalidAccessKeyId")
		late := signed("GET", "/media/a", "")
		<-time.After(16 * time.Minute)
		f.refused(f.serve(late), 403, "RequestTimeTooSkewed")
		for _, body := range []string{"zz", "5\r\nabc", "3\r\nabcX0\r\n\r\n"} {
			f.refused(f.do("PUT", "/media/a", body, "X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "X-Amz-Decoded-Content-Length", "3"), 400, "IncompleteBody")
		}
		w := f.do("PUT", "/media/b", "3\r\nabc\r\n0\r\nx-amz-checksum-crc32:abcd\r\n\r\n", "X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "X-Amz-Decoded-Content-Length", "3")
		require.Equal(t, 200, w.Code, "%s", w.Body)
		body, _, ok := f.Object("media", "b")
		require.True(t, ok)
		require.Equal(t, "abc", string(body))
	})
}

func TestObjects(t *testing.T) {
	f := newFixture(t)
	w := f.do("PUT", "/media/a%20b/c+d.txt", "0123456789", "Content-Type", "text/plain", "X-Amz-Meta-Origin", "feed")
	require.Equal(t, 200, w.Code, "%s", w.Body)
	etag := w.Header().Get("Etag")
	w = f.do("GET", "/media/a%20b/c+d.txt", "")
	require.Equal(t, "0123456789", w.Body.String())
	require.Equal(t, "text/plain", w.Header().Get("Content-Type"))
	require.Equal(t, "feed", w.Header().Get("X-Amz-Meta-Origin"))
	require.Equal(t, etag, w.Header().Get("Etag"))
	require.Equal(t, 304, f.do("GET", "/media/a%20b/c+d.txt", "", "If-None-Match", etag).Code)
	for asked, want := range map[string]string{"bytes=2-4": "234", "bytes=7-": "789", "bytes=-2": "89", "bytes=8-99": "89"} {
		w = f.do("GET", "/media/a%20b/c+d.txt", "", "Range", asked)
		require.Equal(t, 206, w.Code)
		require.Equal(t, want, w.Body.String())
		require.True(t, strings.HasSuffix(w.Header().Get("Content-Range"), "/10"))
	}
	f.refused(f.do("GET", "/media/a%20b/c+d.txt", "", "Range", "bytes=10-"), 416, "InvalidRange")
	w = f.do("HEAD", "/media/a%20b/c+d.txt", "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, "10", w.Header().Get("Content-Length"))
	require.Empty(t, w.Body.String())
	f.refused(f.do("PUT", "/media/a%20b/c+d.txt", "new", "If-None-Match", "*"), 412, "PreconditionFailed")
	f.refused(f.do("PUT", "/media/x", "new", "Content-Md5", "AAAA"), 400, "BadDigest")
	f.refused(f.do("PUT", "/media/x", "", "X-Amz-Copy-Source", "/media/y"), 501, "NotImplemented")
	f.refused(f.do("GET", "/else/x", ""), 404, "NoSuchBucket")
	f.refused(f.do("PUT", "/UPPER", ""), 400, "InvalidBucketName")
	require.Equal(t, 200, f.do("PUT", "/fresh", "").Code)
	require.Equal(t, 200, f.do("HEAD", "/fresh", "").Code)

	require.Equal(t, 204, f.do("DELETE", "/media/a%20b/c+d.txt", "").Code)
	f.refused(f.do("GET", "/media/a%20b/c+d.txt", ""), 404, "NoSuchKey")
	require.NoError(t, f.core.Faults.Add(sim.Fault{Platform: objectstore.Platform, Method: "PUT Object", Effect: sim.EffectStatus, Status: 503}))
	f.refused(f.do("PUT", "/media/x", "new"), 503, "SlowDown")
}

func TestLists(t *testing.T) {
	f := newFixture(t)
	for _, key := range []string{"b/1", "a", "b/2", "c", "b/sub/3"} {
		require.Equal(t, 200, f.do("PUT", "/media/"+key, key).Code)
	}
	type page struct {
		KeyCount              int
		IsTruncated           bool
		NextContinuationToken string
		Contents              []struct {
			Key  string
			Size int
		}
		CommonPrefixes []struct{ Prefix string }
	}
	list := func(query string) (p page, keys string) {
		w := f.do("GET", "/media?list-type=2"+query, "")
		require.Equal(t, 200, w.Code, "%s", w.Body)
		require.NoError(t, xml.Unmarshal(w.Body.Bytes(), &p))
		for _, o := range p.Contents {
			keys += o.Key + " "
		}
		for _, d := range p.CommonPrefixes {
			keys += d.Prefix + " "
		}
		return p, keys
	}
	_, keys := list("")
	require.Equal(t, "a b/1 b/2 b/sub/3 c ", keys)
	_, keys = list("&prefix=b/&delimiter=/")
	require.Equal(t, "b/1 b/2 b/sub/ ", keys)
	p, keys := list("&delimiter=/&max-keys=2")
	require.Equal(t, "a b/ ", keys)
	require.True(t, p.IsTruncated)
	p, keys = list("&delimiter=/&max-keys=2&continuation-token=" + url.QueryEscape(p.NextContinuationToken))
	require.Equal(t, "c ", keys)
	require.False(t, p.IsTruncated)
	_, keys = list("&start-after=b/2")
	require.Equal(t, "b/sub/3 c ", keys)
	f.refused(f.do("GET", "/media?list-type=2&max-keys=x", ""), 400, "InvalidArgument")
	f.refused(f.do("GET", "/media?list-type=2&continuation-token=%25", ""), 400, "InvalidArgument")
	f.Reset()
	_, keys = list("")
	require.Empty(t, keys)
}

func TestUploadsInParts(t *testing.T) {
	f := newFixture(t)
	w := f.do("POST", "/media/big?uploads", "", "Content-Type", "video/mp4")
	var begun struct{ UploadId string }
	require.NoError(t, xml.Unmarshal(w.Body.Bytes(), &begun))
	at := "/media/big?uploadId=" + begun.UploadId
	big := strings.Repeat("x", 5<<20)
	part := func(number int, content string) string {
		w := f.do("PUT", at+fmt.Sprintf("&partNumber=%d", number), content)
		require.Equal(t, 200, w.Code, "%s", w.Body)
		return fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", number, w.Header().Get("Etag"))
	}
	complete := func(parts ...string) *httptest.ResponseRecorder {
		return f.do("POST", at, "<CompleteMultipartUpload>"+strings.Join(parts, "")+"</CompleteMultipartUpload>")
	}
	small, first, last := part(1, "small"), part(2, big), part(3, "end")
	f.refused(complete(small, first), 400, "EntityTooSmall")
	f.refused(complete(first, small), 400, "InvalidPartOrder")
	f.refused(complete(strings.Replace(first, ">2<", ">9<", 1)), 400, "InvalidPart")
	f.refused(complete(), 400, "MalformedXML")
	f.refused(f.do("PUT", at+"&partNumber=10001", "x"), 400, "InvalidArgument")
	w = complete(first, last)
	require.Equal(t, 200, w.Code, "%s", w.Body)
	require.Contains(t, w.Body.String(), "-2")
	body, contentType, ok := f.Object("media", "big")
	require.True(t, ok)
	require.Equal(t, big+"end", string(body))
	require.Equal(t, "video/mp4", contentType)
	f.refused(complete(first), 404, "NoSuchUpload")

	w = f.do("POST", "/media/gone?uploads", "")
	require.NoError(t, xml.Unmarshal(w.Body.Bytes(), &begun))
	require.Equal(t, 204, f.do("DELETE", "/media/gone?uploadId="+begun.UploadId, "").Code)
	f.refused(f.do("DELETE", "/media/gone?uploadId="+begun.UploadId, ""), 404, "NoSuchUpload")
}

func TestAnyKey(t *testing.T) {
	core := sim.NewCore(0)
	f := fixture{objectstore.New(core, objectstore.Options{AnyKey: true}), t, core}
	f.refused(f.do("PUT", "/new-bucket/a", "x"), 403, "SignatureDoesNotMatch")
	require.NoError(t, f.AddKey(keyID, secret))
	require.Equal(t, 200, f.do("PUT", "/new-bucket/a", "x").Code)
	require.NotContains(t, core.Log.Entries()[0].Credential, "AKIA")
}
