package cli

import (
	"bytes"
	"cmp"
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

	"autopost/internal/config"
	"autopost/internal/pg"
)

func endpointRotateCommand() *cobra.Command {
	var m operatorFlags
	var newID, signingRef, secretFile, url string
	var keep time.Duration
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Replace the secret or signing key of an endpoint",
		Long: `Replace the secret of an endpoint. The command creates a copy of the endpoint (ID-2, or
--new-id) with a new secret and prints the secret once. Both endpoints accept posts until
you run autopost endpoint disable ID. An endpoint without a secret, like one from
autopost config apply, keeps its id and gets the new secret.

With --signing-ref the command replaces the signing key. The endpoint keeps its id, and
the previous key stays valid for --keep.`,
		Example: `  autopost endpoint rotate cms --reason "yearly rotation"
  autopost endpoint rotate signed --signing-ref key-2 --keep 48h --reason "yearly rotation"`,
		Args: oneArgument("endpoint id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields := map[string]any{}
			var secret string
			if signingRef != "" {
				if secretFile != "" || newID != "" {
					return usageError{errors.New("--signing-ref must not be used with --new-id or --secret-file: remove one of them")}
				}
				fields["signing_ref"] = signingRef
				if cmd.Flags().Changed("keep") {
					fields["keep_seconds"] = int(keep / time.Second)
				}
			} else {
				if cmd.Flags().Changed("keep") {
					return usageError{errors.New("--keep must be used with --signing-ref: an old secret is valid until its endpoint is disabled")}
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
				change, err := pg.Decode[pg.EndpointChange](store.RotateEndpoint(ctx, m.act, args[0], fields))
				if err != nil {
					return err
				}
				if err := m.printEndpointChange(change, newSecret{secret: secret, given: secretFile != "", url: url}); err != nil {
					return err
				}
				if secret != "" && !m.act.DryRun && change.EndpointID != args[0] {
					fmt.Fprintf(os.Stderr, "autopost: endpoint %s stays valid: run autopost endpoint disable %s when no sender uses it any more\n", args[0], args[0])
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&newID, "new-id", "", "id of the new endpoint (default: ID-2, ID-3, …)")
	cmd.Flags().StringVar(&signingRef, "signing-ref", "", "credential name of the new signing key")
	durationFlag(cmd, &keep, "keep", 24*time.Hour, "how long the previous signing key stays valid; 0s ends it at once")
	secretFlags(cmd, &secretFile, &url)
	m.flags(cmd)
	return cmd
}

func endpointSwitchCommand(verb, short string, do func(*pg.Store, context.Context, pg.OperatorAction, string) (pg.Written, error)) *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: "  autopost endpoint " + verb + " cms",
		Args:    oneArgument("endpoint id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				change, err := pg.Decode[pg.EndpointChange](do(store, ctx, m.act, args[0]))
				if err != nil {
					return err
				}
				return m.printEndpointChange(change, newSecret{})
			})
		},
	}
	m.flags(cmd)
	return cmd
}

// enableEndpoint lets an endpoint accept posts again.
func enableEndpoint(ctx context.Context, store *pg.Store, act pg.OperatorAction, endpoint string) (pg.Written, error) {
	if known, err := store.GetEndpoint(ctx, act.Workspace, endpoint); err != nil || known == nil {
		return pg.Written{}, cmp.Or(err, unknownEndpoint(endpoint))
	}
	return store.PutEndpoint(ctx, act, endpoint, map[string]any{"enabled": true})
}

// minSecretBytes and maxSecretBytes limit the length of a given secret. A shorter one
// can be guessed.
const (
	minSecretBytes = 16
	maxSecretBytes = 4096
)

// newOrGiven generates a secret, or reads it from the file.
func newOrGiven(file string) (string, error) {
	if file == "" {
		return newKey(), nil
	}
	from := io.Reader(os.Stdin)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", usageError{err}
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxSecretBytes+1))
	if err != nil {
		return "", usageError{err}
	}
	secret := string(bytes.TrimSpace(raw))
	if len(secret) < minSecretBytes || len(raw) > maxSecretBytes || strings.ContainsAny(secret, " \t\r\n") {
		return "", usageError{fmt.Errorf("the secret in %s must be one word of %d to %d bytes: write it without spaces", inputName(file), minSecretBytes, maxSecretBytes)}
	}
	return secret, nil
}

// newSecret is the new secret of an endpoint.
type newSecret struct {
	secret string
	// given means that the operator supplied the secret. It is then not printed.
	given bool
	// url is the base URL of the daemon. If it is empty, AUTOPOST_LISTEN is used.
	url string
}

// curl returns a command that sends a first post.
func (i newSecret) curl() (string, error) {
	secret := i.secret
	if i.given {
		secret = "SECRET"
	}
	if i.url == "" {
		cfg, err := config.Load(os.Environ())
		if err != nil {
			return "", err
		}
		i.url = "http://" + cfg.Listen
	}
	return fmt.Sprintf(`curl -sS %s/hooks/push -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"text": "Hello"}'`,
		strings.TrimSuffix(i.url, "/"), secret), nil
}

// endpointRefusals explains the reasons of refused changes.
var endpointRefusals = map[string]string{
	"unchanged":        "the endpoint already has these values",
	"secret_in_use":    "another enabled endpoint has this secret: use a generated secret, or disable that endpoint first",
	"source_in_use":    "the source already has an enabled endpoint: disable that first",
	"unknown_endpoint": "unknown endpoint: run autopost endpoint list",
	"disabled":         "the endpoint is disabled: run autopost endpoint enable",
	"id_in_use":        "an endpoint with the new id already exists: pass another --new-id",
	"rotating":         "two signing keys are valid now: wait until the older one expires, or end it with --keep 0s",
}

// printEndpointChange prints the changes of an endpoint and its new secret.
func (m *operatorFlags) printEndpointChange(change pg.EndpointChange, new newSecret) error {
	if len(change.Errors) > 0 {
		return usageError{fieldErrors(change.Errors)}
	}
	show := new.secret != "" && change.Applied && !m.act.DryRun
	curl := ""
	if show && change.After["kind"] == "webhook_push" {
		var err error
		if curl, err = new.curl(); err != nil {
			return err
		}
	}
	if m.asJSON {
		if err := printEndpointJSON(change, new, show, curl); err != nil {
			return err
		}
	} else if change.Applied {
		if err := m.printEndpoint(change); err != nil {
			return err
		}
		if show && !new.given {
			fmt.Fprintf(os.Stdout, "secret, not shown again: %s\n", new.secret)
		}
		if curl != "" {
			fmt.Fprintf(os.Stdout, "to test it:\n%s\n", curl)
		}
	}
	if change.Note != "" {
		fmt.Fprintln(os.Stderr, "autopost: "+change.Note)
	}
	if !change.Applied {
		return fmt.Errorf("nothing was changed: %s", endpointRefusals[change.Reason])
	}
	if change.Bound != nil && !*change.Bound {
		fmt.Fprintln(os.Stderr, "autopost: signing_ref must name a credential of platform webhook: until then all signed requests are rejected")
	}
	return nil
}

func printEndpointJSON(change pg.EndpointChange, new newSecret, show bool, curl string) error {
	var answer map[string]any
	if err := json.Unmarshal(change.Raw, &answer); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	if show && !new.given {
		answer["secret"] = new.secret
	}
	if curl != "" {
		answer["curl"] = curl
	}
	return printJSON(answer)
}

// printEndpoint prints the changed fields as a table.
func (m *operatorFlags) printEndpoint(change pg.EndpointChange) error {
	if m.act.DryRun {
		fmt.Fprintln(os.Stdout, dryRunHeading)
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
