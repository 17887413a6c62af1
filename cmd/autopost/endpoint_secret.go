package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func endpointRotateCommand() *cobra.Command {
	var m manual
	var newID, signingRef, secretFile, url string
	var keep time.Duration
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give an endpoint another secret without a gap",
		Long: `Give an endpoint another secret. A copy of it, ID-2 unless you name it, has the new
one, which is printed this once; both take posts until you run
"autopost endpoint disable ID". One that has no secret yet, as after "autopost
config apply", keeps its id and takes posts from now on. With --signing-ref it is
the signing key that changes: the endpoint keeps its id, and the previous key is
good for --keep.`,
		Args: oneArgument("id of an endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields := map[string]any{}
			var secret string
			if signingRef != "" {
				if secretFile != "" || newID != "" {
					return misuse{errors.New("--signing-ref changes the key of the same endpoint: leave --new-id and --secret-file out")}
				}
				fields["signing_ref"] = signingRef
				if cmd.Flags().Changed("keep") {
					fields["keep_seconds"] = int(keep / time.Second)
				}
			} else {
				if cmd.Flags().Changed("keep") {
					return misuse{errors.New("--keep is for signing keys: an old endpoint is good until it is disabled")}
				}
				var err error
				if secret, err = newOrGiven(secretFile); err != nil {
					return err
				}
				fields["secret_hash"] = secretHash(secret)
				if newID != "" {
					fields["new_endpoint_id"] = newID
				}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				change, err := store.RotateEndpoint(ctx, m.act, args[0], fields)
				if err != nil {
					return err
				}
				if err := m.tellEndpoint(change, issued{secret: secret, given: secretFile != "", url: url}); err != nil {
					return err
				}
				if secret != "" && !m.act.DryRun && change.EndpointID != args[0] {
					fmt.Fprintf(os.Stderr, "autopost: %s is good until you run: autopost endpoint disable %s\n", args[0], args[0])
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&newID, "new-id", "", "id of the endpoint that takes over (default ID-2, ID-3, …)")
	cmd.Flags().StringVar(&signingRef, "signing-ref", "", "auth_ref of the new signing key")
	cmd.Flags().DurationVar(&keep, "keep", 24*time.Hour, "how long the previous signing key is good; 0s ends it at once")
	secretFlags(cmd, &secretFile, &url)
	m.flags(cmd)
	return cmd
}

func endpointDisableCommand() *cobra.Command {
	var m manual
	cmd := &cobra.Command{
		Use:   "disable ID",
		Short: "Take nothing by an endpoint any more; it stays for the record",
		Args:  oneArgument("id of an endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				change, err := store.DisableEndpoint(ctx, m.act, args[0])
				if err != nil {
					return err
				}
				return m.tellEndpoint(change, issued{})
			})
		},
	}
	m.flags(cmd)
	return cmd
}

// shortestSecret is in bytes; a shorter one can be guessed.
const shortestSecret = 16

// newOrGiven makes a secret, or reads that of the file.
func newOrGiven(file string) (string, error) {
	if file == "" {
		return newKey(), nil
	}
	from := io.Reader(os.Stdin)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", misuse{err}
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, 4097))
	if err != nil {
		return "", misuse{err}
	}
	secret := string(bytes.TrimSpace(raw))
	if len(secret) < shortestSecret || len(raw) > 4096 || strings.ContainsAny(secret, " \t\r\n") {
		return "", misuse{fmt.Errorf("--secret-file %s holds no secret: it must be one word of %d to 4096 bytes", file, shortestSecret)}
	}
	return secret, nil
}

// issued is a secret that an endpoint was just given.
type issued struct {
	secret string
	// given says that the person brought it and knows it.
	given bool
	// url is where senders reach the daemon; empty for where it listens.
	url string
}

// line is a command that sends a first post.
func (i issued) line() (string, error) {
	secret := i.secret
	if i.given {
		secret = "SECRET"
	}
	if i.url == "" {
		cfg, err := loadConfig()
		if err != nil {
			return "", err
		}
		i.url = "http://" + cfg.Listen
	}
	return fmt.Sprintf(`curl -sS %s/hooks/push -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"text": "Hello"}'`,
		strings.TrimSuffix(i.url, "/"), secret), nil
}

// refusals of a change, in words that say what to do.
var endpointRefusals = map[string]string{
	"unchanged":        "it is so already",
	"secret_in_use":    "another enabled endpoint has this secret: let one be made, or disable that endpoint first",
	"source_in_use":    "the source has an enabled endpoint already: disable that first",
	"unknown_endpoint": "there is no such endpoint: see autopost endpoint list",
	"disabled":         "the endpoint is disabled: see autopost endpoint set --enabled",
	"id_in_use":        "there is an endpoint of the new id already: choose another --new-id",
	"rotating":         "two signing keys are good at the moment: wait until the older one is over, or end it with --keep 0s",
}

// tellEndpoint prints what became of an endpoint, and its new secret, if it has one.
func (m *manual) tellEndpoint(change pg.EndpointChange, new issued) error {
	if len(change.Errors) > 0 {
		return misuse{fieldErrors(change.Errors)}
	}
	shown := new.secret != "" && change.Applied && !m.act.DryRun
	line := ""
	if shown && change.After["kind"] == "webhook_push" {
		var err error
		if line, err = new.line(); err != nil {
			return err
		}
	}
	if m.asJSON {
		if err := printEndpointJSON(change, new, shown, line); err != nil {
			return err
		}
	} else if change.Applied {
		if err := m.printEndpoint(change); err != nil {
			return err
		}
		if shown && !new.given {
			fmt.Fprintf(os.Stdout, "secret, not shown again: %s\n", new.secret)
		}
		if line != "" {
			fmt.Fprintf(os.Stdout, "to try it:\n%s\n", line)
		}
	}
	if change.Note != "" {
		fmt.Fprintln(os.Stderr, "autopost: "+change.Note)
	}
	if !change.Applied {
		return fmt.Errorf("nothing was changed: %s", endpointRefusals[change.Reason])
	}
	if change.Bound != nil && !*change.Bound {
		fmt.Fprintln(os.Stderr, "autopost: its signing_ref has no row of platform webhook in autopost.credential_bindings: nothing signed can be verified until it has")
	}
	return nil
}

func printEndpointJSON(change pg.EndpointChange, new issued, shown bool, line string) error {
	var answer map[string]any
	if err := json.Unmarshal(change.Raw, &answer); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	if shown && !new.given {
		answer["secret"] = new.secret
	}
	if line != "" {
		answer["curl"] = line
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(answer)
}

// printEndpoint shows the fields that changed, of a new endpoint all that are set.
func (m *manual) printEndpoint(change pg.EndpointChange) error {
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, "dry run: nothing was changed; this is what would be")
	}
	fmt.Fprintf(os.Stdout, "endpoint %s\n", change.EndpointID)
	var rows [][]any
	for field, after := range change.After {
		if !reflect.DeepEqual(change.Before[field], after) && field != "endpoint_id" {
			rows = append(rows, []any{field, plainText(change.Before[field]), plainText(after)})
		}
	}
	slices.SortFunc(rows, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return printChanges(rows)
}
