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

// s3Bucket uploads in smaller parts than the driver. It aborts unfinished multipart uploads, which are not objects but
// cost money.
type s3Bucket struct {
	copying
	client       *s3.Client
	name, prefix string
	// encryption and encryptionKey are the server-side encryption in the URL.
	encryption    types.ServerSideEncryption
	encryptionKey *string
}

func newS3Bucket(bucket *blob.Bucket, name string, query url.Values) (s3Bucket, error) {
	b := s3Bucket{copying: copying{bucket}, name: name, prefix: query.Get("prefix"), encryption: types.ServerSideEncryption(query.Get("ssetype"))}
	if key := query.Get("kmskeyid"); key != "" {
		b.encryptionKey = &key
	}
	if !bucket.As(&b.client) {
		return b, errors.New("the bucket must use the driver s3blob")
	}
	return b, nil
}

// write holds few parts in memory. The driver would buffer 16 MiB for the first part.
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

// openGoogle opens a bucket of Google Cloud Storage through its S3 interface. AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY hold the keys from the interoperability settings of the account. The client of Google would
// increase the program and its idle memory by half.
func openGoogle(ctx context.Context, name string, query url.Values) (*blob.Bucket, error) {
	config, err := gocloudaws.V2ConfigFromURLParams(ctx, url.Values{
		"endpoint": {cmp.Or(query.Get("endpoint"), "https://storage.googleapis.com")},
		"region":   {cmp.Or(query.Get("region"), "auto")},
		// Google refuses checksums after the body.
		"request_checksum_calculation": {"when_required"}, "response_checksum_validation": {"when_required"},
	})
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(config, func(o *s3.Options) {
		o.UsePathStyle = true
		o.APIOptions = append(o.APIOptions, leaveEncodingUnsigned)
		bounded(o)
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

// leaveEncodingUnsigned excludes Accept-Encoding from the signature, because Google changes this header before the check.
func leaveEncodingUnsigned(stack *middleware.Stack) error {
	if _, err := stack.Finalize.Remove("DisableAcceptEncodingGzip"); err != nil {
		return fmt.Errorf("leave Accept-Encoding unsigned: %w", err)
	}
	return nil
}
