package media

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	gocloudaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// s3Bucket uploads in parts smaller than the driver's, and knows of the parts that a
// dead writer leaves: they are no objects, and are paid for until somebody aborts them.
type s3Bucket struct {
	copying
	client       *s3.Client
	name, prefix string
	// encryption and encryptionKey are what the URL says of the server's side.
	encryption    types.ServerSideEncryption
	encryptionKey *string
}

func newS3Bucket(bucket *blob.Bucket, name string, query url.Values) (s3Bucket, error) {
	b := s3Bucket{copying: copying{bucket}, name: name, prefix: query.Get("prefix"), encryption: types.ServerSideEncryption(query.Get("ssetype"))}
	if key := query.Get("kmskeyid"); key != "" {
		b.encryptionKey = &key
	}
	if !bucket.As(&b.client) {
		return b, errors.New("the driver of the bucket is not Amazon's")
	}
	return b, nil
}

// write holds few parts in memory. The driver would gather 16 MiB before the first.
func (b s3Bucket) write(ctx context.Context, key, contentType string, body io.Reader) error {
	uploads := transfermanager.New(b.client, func(o *transfermanager.Options) {
		o.PartSizeBytes, o.MultipartUploadThreshold, o.Concurrency = partBytes, partBytes, partsAtOnce
		o.RequestChecksumCalculation = b.client.Options().RequestChecksumCalculation
	})
	_, err := uploads.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: &b.name, Key: aws.String(b.prefix + key), ContentType: &contentType, Body: body,
		ServerSideEncryption: b.encryption, SSEKMSKeyID: b.encryptionKey,
	})
	return err
}

func (b s3Bucket) leftovers(ctx context.Context, then time.Time) (aborted int, err error) {
	pages := s3.NewListMultipartUploadsPaginator(b.client, &s3.ListMultipartUploadsInput{
		Bucket: &b.name, Prefix: aws.String(b.prefix + temporaryFolder),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return aborted, fmt.Errorf("list unfinished uploads: %w", err)
		}
		for _, upload := range page.Uploads {
			if upload.Initiated == nil || !upload.Initiated.Before(then) {
				continue
			}
			if _, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
				Bucket: &b.name, Key: upload.Key, UploadId: upload.UploadId,
			}); err != nil {
				return aborted, fmt.Errorf("abort an unfinished upload: %w", err)
			}
			aborted++
		}
	}
	return aborted, nil
}

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
