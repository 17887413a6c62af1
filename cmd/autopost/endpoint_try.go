package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/ingest/push"
	"autopost/internal/pg"
)

func endpointTestCommand() *cobra.Command {
	var workspace, request string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test ID [FILE.json]",
		Short: "Say what a body would do, or whether a captured request is signed well; send nothing",
		Long: `Say what a body from FILE.json or standard input would do if it came to this
endpoint now: whether it is taken, and of each post who would get it. Nothing is
sent or written, and the rate of the endpoint is not looked at.

With --request, judge a captured request instead: a file with the request line, the
headers, an empty line and the body, byte for byte as it came.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return misuse{fmt.Errorf("%s takes the id of an endpoint and one file at most\nsee %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if request != "" && len(args) > 1 {
				return misuse{errors.New("a body comes from a file or from --request, not from both")}
			}
			return withDesk(cmd.Context(), func(ctx context.Context, d desk) error {
				chosen, err := chooseWorkspace(ctx, d.store, workspace)
				if err != nil {
					return err
				}
				if request != "" {
					return tryRequest(ctx, d, chosen, args[0], request)
				}
				return tryBody(ctx, d.store, chosen, args, asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().StringVar(&request, "request", "", "file that holds a captured request whose signature is judged")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plan of each post as JSON, a line each")
	return cmd
}

// tryBody plans what the body would do.
func tryBody(ctx context.Context, store *pg.Store, workspace string, args []string, asJSON bool) error {
	raw, err := store.GetEndpoint(ctx, workspace, args[0])
	if err != nil || raw == nil {
		return unknownEndpoint(args[0], err)
	}
	var endpoint struct {
		Kind            string
		Enabled         bool
		MaxPayloadBytes int `json:"max_payload_bytes"`
	}
	if err := json.Unmarshal(raw, &endpoint); err != nil {
		return fmt.Errorf("decode the endpoint: %w", err)
	}
	if endpoint.Kind != "webhook_push" || !endpoint.Enabled {
		return fmt.Errorf("endpoint %s takes no posts: it is of kind %s, enabled: %t", args[0], endpoint.Kind, endpoint.Enabled)
	}
	body, err := readBody(args[1:])
	if err != nil {
		return err
	}
	if len(body) > endpoint.MaxPayloadBytes {
		return fmt.Errorf("the body has %d bytes, and the endpoint takes up to %d", len(body), endpoint.MaxPayloadBytes)
	}
	posts, err := push.Inspect(body)
	if err != nil {
		return err
	}
	wrong := 0
	for n, post := range posts {
		if !asJSON && len(posts) > 1 {
			fmt.Fprintf(os.Stdout, "post %d\n", n+1)
		}
		if err := tryPost(ctx, store, workspace, post, asJSON); err != nil {
			wrong++
			fmt.Fprintf(os.Stderr, "autopost: post %d: %v\n", n+1, err)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d posts would be rejected", wrong, len(posts))
	}
	return nil
}

func tryPost(ctx context.Context, store *pg.Store, workspace string, post push.Inspected, asJSON bool) error {
	if post.Wrong != "" {
		return errors.New(post.Wrong)
	}
	plan, err := store.Plan(ctx, workspace, post.Raw, time.Time{})
	if err != nil {
		return err
	}
	return tellPlan(plan, asJSON)
}

func readBody(args []string) ([]byte, error) {
	var body []byte
	var err error
	if len(args) == 0 || args[0] == "-" {
		body, err = io.ReadAll(os.Stdin)
	} else {
		body, err = os.ReadFile(args[0])
	}
	if err != nil {
		return nil, misuse{err}
	}
	return body, nil
}

// tryRequest judges the signature of a captured request by the keys that are good now.
func tryRequest(ctx context.Context, d desk, workspace, endpoint, file string) error {
	header, body, err := readRequest(file)
	if err != nil {
		return err
	}
	at, err := push.SignedAt(header)
	if err != nil {
		return err
	}
	found, err := signedStore{d.store, d.vault, slog.New(slog.NewTextHandler(os.Stderr, nil))}.ResolveSignedEndpoint(ctx, at, workspace, endpoint)
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("endpoint %s takes no signed requests: it is not there, is disabled, or has no signing_ref", endpoint)
	}
	if err := push.CheckSignature(header, body, found.Keys); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "the signature is good; it is taken from %s to %s, once\n",
		at.Add(-found.Tolerance).UTC().Format(time.RFC3339), at.Add(found.Tolerance).UTC().Format(time.RFC3339))
	return nil
}

// readRequest reads a request as it is on the wire; without a Content-Length the
// body is what follows.
func readRequest(file string) (http.Header, []byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, misuse{err}
	}
	reader := bufio.NewReader(bytes.NewReader(raw))
	request, err := http.ReadRequest(reader)
	if err != nil {
		return nil, nil, misuse{fmt.Errorf("%s holds no request: begin with a line as in POST /hooks/push/w/e HTTP/1.1, then headers, an empty line, the body", file)}
	}
	var body []byte
	if request.ContentLength == 0 && len(request.TransferEncoding) == 0 {
		body, err = io.ReadAll(reader)
	} else {
		body, err = io.ReadAll(request.Body)
	}
	if err != nil {
		return nil, nil, misuse{fmt.Errorf("%s: the body does not fit its headers: %w", file, err)}
	}
	return request.Header, body, nil
}
