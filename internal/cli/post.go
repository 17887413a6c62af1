package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"autopost"
	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/pg"
	"autopost/internal/problem"
)

func postCommand() *cobra.Command {
	var input postInput
	var f readFlags
	var endpoint string
	cmd := &cobra.Command{
		Use:   "post [FILE.json]",
		Short: "Enqueue a post from a file, stdin or flags",
		Long: `Enqueue one post from FILE.json, from standard input (no FILE, or "-"), or from flags.
The JSON has the format of /hooks/push. A running daemon sends the post. It first
downloads media that are given by URL. The command stores media that are given by file,
in the media store of AUTOPOST_BLOB_URL, which must be that of the daemon. A channel does
not get content that it already has.`,
		Example: `  autopost post --text "Hello" --channel city
  autopost post --text "The new bridge" --media bridge.jpg
  autopost post post.json`,
		Args: atMostOneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			post, err := input.read(args)
			if err != nil {
				return err
			}
			return withConfiguredStore(cmd.Context(), func(ctx context.Context, cfg config.Config, store *pg.Store) error {
				workspace, err := chooseWorkspace(ctx, store, f.workspace)
				if err != nil {
					return err
				}
				if err := storeFiles(ctx, cfg, store, workspace, post); err != nil {
					return err
				}
				raw, err := submit(ctx, store, pg.OperatorAction{Workspace: workspace, Operator: daemon.Operator()}, endpoint, post)
				if err != nil {
					return asUsageError(err)
				}
				return printPosted(raw, f.asJSON)
			})
		},
	}
	input.flags(cmd)
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "endpoint that the post is recorded for (default: the only enabled one)")
	f.addOne(cmd)
	return cmd
}

// storeFiles puts the files of a post into the media store.
func storeFiles(ctx context.Context, cfg config.Config, store *pg.Store, workspace string, post payload) error {
	if post.firstFile() == "" {
		return nil
	}
	bucket, err := daemon.OpenMedia(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = bucket.Close() }()
	uploads := daemon.NewUploads(cfg, store, bucket)
	return post.store(func(name string, kind autopost.MediaKind) (string, error) {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }() // it was only read
		origin, err := uploads.Put(ctx, workspace, file, kind)
		return origin.BlobRef, err
	})
}

// submit enqueues a post whose files are stored.
func submit(ctx context.Context, store *pg.Store, act pg.OperatorAction, endpoint string, post payload) (json.RawMessage, error) {
	encoded, err := post.encode()
	if err != nil {
		return nil, err
	}
	return pg.Decode[json.RawMessage](store.SubmitPost(ctx, act, endpoint, "command", encoded))
}

// verdict is the part of a plan or enqueue answer that concerns the whole post.
type verdict struct {
	Status   string          `json:"status"`
	Errors   []problem.Fault `json:"errors"`
	Warnings []string        `json:"warnings"`
}

// check prints ignored fields to standard error and fails if the post was rejected.
func (v verdict) check() error {
	if len(v.Warnings) > 0 {
		note("without effect: %s", strings.Join(v.Warnings, ", "))
	}
	if v.Status != "rejected" {
		return nil
	}
	return fmt.Errorf("the post is rejected\n%s", fieldErrorLines(v.Errors))
}

func printPosted(raw json.RawMessage, asJSON bool) error {
	var a struct {
		verdict

		RunID                               string `json:"run_id"`
		SubmissionID                        string `json:"submission_id"`
		Enqueued, Deduped, Invalid, Skipped int
		Fanout                              string
		Deliveries                          []struct {
			ChannelID  string `json:"channel_id"`
			DeliveryID string `json:"delivery_id"`
			Status     string
			Reason     string
		}
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	if asJSON {
		if err := printJSON(raw); err != nil {
			return err
		}
		return a.check()
	}
	if err := a.check(); err != nil {
		return err
	}
	if a.SubmissionID != "" {
		say("accepted as submission %s; it is enqueued after its media are downloaded", a.SubmissionID)
		return nil
	}
	if a.Status == "duplicate" && a.Deliveries == nil {
		say("duplicate: the endpoint has this source_ref already, see run %s", a.RunID)
		return nil
	}
	rows := make([][]any, 0, len(a.Deliveries))
	for _, d := range a.Deliveries {
		rows = append(rows, []any{d.ChannelID, d.Status, d.Reason, d.DeliveryID})
	}
	if err := printTable([]string{"channel", "status", "why", "delivery"}, rows); err != nil {
		return err
	}
	say("%d enqueued, %s, %d invalid, %d skipped; run %s", a.Enqueued, counted(a.Deduped, "duplicate"), a.Invalid, a.Skipped, a.RunID)
	return nil
}
