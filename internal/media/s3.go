package media

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// s3Bucket knows of the uploads in parts that a dead writer leaves: they are no
// objects, and are paid for until somebody aborts them.
type s3Bucket struct {
	copying
	name, prefix string
}

func (b s3Bucket) leftovers(ctx context.Context, then time.Time) (aborted int, err error) {
	var client *s3.Client
	if !b.bucket.As(&client) {
		return 0, errors.New("the driver of the bucket is not Amazon's")
	}
	pages := s3.NewListMultipartUploadsPaginator(client, &s3.ListMultipartUploadsInput{
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
			if _, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
				Bucket: &b.name, Key: upload.Key, UploadId: upload.UploadId,
			}); err != nil {
				return aborted, fmt.Errorf("abort an unfinished upload: %w", err)
			}
			aborted++
		}
	}
	return aborted, nil
}
