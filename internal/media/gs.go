package media

import (
	"cmp"
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	gocloudaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// openGoogle opens a bucket of Google Cloud Storage by its S3 interface, with the
// keys of an account's interoperability settings in AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY. Google's own client would make the program half as large
// again, and the memory that it rests in too.
func openGoogle(ctx context.Context, name string, query url.Values) (*blob.Bucket, error) {
	config, err := gocloudaws.V2ConfigFromURLParams(ctx, url.Values{
		"endpoint": {cmp.Or(query.Get("endpoint"), "https://storage.googleapis.com")},
		"region":   {cmp.Or(query.Get("region"), "auto")},
		// Google refuses checksums behind the body.
		"request_checksum_calculation": {"when_required"}, "response_checksum_validation": {"when_required"},
	})
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(config, func(o *s3.Options) {
		o.UsePathStyle = true
		o.APIOptions = append(o.APIOptions, leaveEncodingUnsigned)
	})
	bucket, err := s3blob.OpenBucket(ctx, client, name, nil)
	if err != nil {
		return nil, err
	}
	if prefix := query.Get("prefix"); prefix != "" {
		return blob.PrefixedBucket(bucket, prefix), nil
	}
	return bucket, nil
}

// leaveEncodingUnsigned keeps Accept-Encoding out of the signature: Google changes
// that header before it checks.
func leaveEncodingUnsigned(stack *middleware.Stack) error {
	if _, err := stack.Finalize.Remove("DisableAcceptEncodingGzip"); err != nil {
		return fmt.Errorf("leave Accept-Encoding unsigned: %w", err)
	}
	return nil
}
