package media

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"autopost/internal/outbound"
)

const (
	// maxS3Answer bounds an answer that is read as a whole: a list of 1,000 keys, or an error. Objects are streamed.
	maxS3Answer = 1 << 20
	// maxS3Headers bounds the headers of an answer.
	maxS3Headers = 64 << 10
)

// boundedS3 fails with outbound.ErrTooLarge on an answer of an object store that is larger than its limit.
type boundedS3 struct{ next s3.HTTPClient }

func (b boundedS3) Do(req *http.Request) (*http.Response, error) {
	resp, err := b.next.Do(req)
	if err != nil {
		return resp, err
	}
	if object := req.Method == http.MethodGet && req.URL.Query().Get("x-id") == "GetObject"; !object || resp.StatusCode >= http.StatusMultipleChoices {
		resp.Body = outbound.Limit(resp.Body, maxS3Answer)
	}
	return resp, nil
}

// bounded limits the answers that the client reads as a whole.
func bounded(o *s3.Options) {
	if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
		o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) { t.MaxResponseHeaderBytes = maxS3Headers })
	}
	o.HTTPClient = boundedS3{o.HTTPClient}
}

// openS3 opens a bucket by its URL, see [s3blob.URLOpener], with bounded answers.
func openS3(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	query := u.Query()
	plain, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, err
	}
	var client *s3.Client
	if !plain.As(&client) {
		return nil, errors.New("the bucket must use the driver s3blob")
	}
	options := s3blob.Options{KMSEncryptionID: query.Get("kmskeyid")}
	for _, encryption := range types.ServerSideEncryptionAes256.Values() {
		if strings.EqualFold(string(encryption), query.Get("ssetype")) {
			options.EncryptionType = encryption
		}
	}
	bucket, err := s3blob.OpenBucket(ctx, s3.New(client.Options(), bounded), u.Host, &options)
	if prefix := query.Get("prefix"); err == nil && prefix != "" {
		return blob.PrefixedBucket(bucket, prefix), nil
	}
	return bucket, err
}
