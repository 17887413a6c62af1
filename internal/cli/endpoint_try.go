package cli

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
	"autopost/internal/table"
)

func endpointTestCommand() *cobra.Command {
	var f readFlags
	var request string
	cmd := &cobra.Command{
		Use:   "test ID [FILE.json]",
		Short: "Check a body or a captured request; send nothing",
		Long: `Check a body from FILE.json or standard input. The command prints whether this endpoint
would accept the body now, and which channels would get each post. It sends and writes
nothing, and it ignores the rate limit of the endpoint.

With --request it checks the signature of a captured request. The file contains the
request line, the headers, an empty line and the exact body.`,
		Example: `  autopost endpoint test cms post.json
  autopost endpoint test signed --request captured.txt`,
		Args: oneWithFile("endpoint id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if request != "" && len(args) > 1 {
				return usageError{errors.New("FILE must not be used with --request: remove one of the two")}
			}
			return withCredentials(cmd.Context(), func(ctx context.Context, d credentialTools) error {
				chosen, err := chooseWorkspace(ctx, d.store, f.workspace)
				if err != nil {
					return err
				}
				if request != "" {
					return tryRequest(ctx, d, chosen, args[0], request)
				}
				return tryBody(ctx, d.store, chosen, args, f.output)
			})
		},
	}
	cmd.Flags().StringVar(&request, "request", "", "`file` with a captured request: check its signature")
	f.add(cmd)
	cmd.Flags().Lookup("json").Usage = "print the plan of each post as one line of JSON"
	return cmd
}

// tryBody plans each post of a body.
func tryBody(ctx context.Context, store *pg.Store, workspace string, args []string, out output) error {
	raw, err := store.GetEndpoint(ctx, workspace, args[0])
	if err != nil {
		return err
	}
	if raw == nil {
		return unknownEndpoint(args[0])
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
		return fmt.Errorf("endpoint %s must be an enabled webhook_push endpoint, got kind %s, enabled %t: choose another endpoint", args[0], endpoint.Kind, endpoint.Enabled)
	}
	name := "-"
	if len(args) > 1 {
		name = args[1]
	}
	body, err := readInput(name)
	if err != nil {
		return err
	}
	if len(body) > endpoint.MaxPayloadBytes {
		return fmt.Errorf("the body must have at most %d bytes, got %d: make it smaller, or run autopost endpoint set with --max-payload-bytes", endpoint.MaxPayloadBytes, len(body))
	}
	posts, err := push.Inspect(body)
	if err != nil {
		return err
	}
	wrong := 0
	for n, post := range posts {
		if !out.asJSON && len(posts) > 1 {
			fmt.Fprintf(os.Stdout, "post %d\n", n+1)
		}
		if err := tryPost(ctx, store, workspace, post, out); err != nil {
			wrong++
			fmt.Fprintf(os.Stderr, "autopost: post %d: %v\n", n+1, err)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %s would be rejected", wrong, counted(len(posts), "post"))
	}
	return nil
}

func tryPost(ctx context.Context, store *pg.Store, workspace string, post push.Inspected, out output) error {
	if post.Wrong != "" {
		return errors.New(post.Wrong)
	}
	plan, err := store.Plan(ctx, workspace, post.Raw, "")
	if err != nil {
		return err
	}
	if out.asJSON { // one line for each post
		return json.NewEncoder(os.Stdout).Encode(plan)
	}
	return out.printPlan(plan)
}

// tryRequest checks the signature of a captured request with the keys that are valid now.
func tryRequest(ctx context.Context, d credentialTools, workspace, endpoint, file string) error {
	header, body, err := readRequest(file)
	if err != nil {
		return err
	}
	at, err := push.SignedAt(header)
	if err != nil {
		return err
	}
	found, err := d.store.ResolveSignedEndpoint(ctx, at, workspace, endpoint)
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("endpoint %s must exist, be enabled and have a signing_ref: run autopost endpoint list", endpoint)
	}
	keys, err := found.OpenKeys(d.vault, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	if err := push.CheckSignature(header, body, keys); err != nil {
		return err
	}
	tolerance := time.Duration(found.ToleranceSeconds) * time.Second
	say("the signature is valid; the request is accepted once, from %s to %s", table.Time(at.Add(-tolerance)), table.Time(at.Add(tolerance)))
	return nil
}

// readRequest reads a request in wire format. Without a Content-Length, the body is the
// rest of the file.
func readRequest(file string) (http.Header, []byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, usageError{err}
	}
	reader := bufio.NewReader(bytes.NewReader(raw))
	request, err := http.ReadRequest(reader)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("%s must contain an HTTP request: write a line like POST /hooks/push/w/e HTTP/1.1, the headers, an empty line and the body", file)}
	}
	var body []byte
	if request.ContentLength == 0 && len(request.TransferEncoding) == 0 {
		body, err = io.ReadAll(reader)
	} else {
		body, err = io.ReadAll(request.Body)
	}
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("the body in %s must match its headers: %w", file, err)}
	}
	return request.Header, body, nil
}
