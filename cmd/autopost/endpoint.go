package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func endpointCommand() *cobra.Command {
	return family("endpoint", "Where posts come in: make, change, rotate, disable and try endpoints",
		endpointAddCommand(), endpointListCommand(), endpointShowCommand(), endpointSetCommand(), endpointRotateCommand(), endpointDisableCommand(), endpointTestCommand())
}

// endpointFields are the flags for what may change of an endpoint.
type endpointFields struct {
	rps        float64
	maxBytes   int
	hashWindow time.Duration
	moderated  bool
	meta       string
}

func (f *endpointFields) flags(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.rps, "rps", 5, "posts a second that it takes")
	cmd.Flags().IntVar(&f.maxBytes, "max-bytes", 262144, "largest body, in bytes")
	cmd.Flags().DurationVar(&f.hashWindow, "hash-window", 10*time.Second, "how long the same body without a source_ref is a repeat")
	cmd.Flags().BoolVar(&f.moderated, "moderated", false, "not yet: posts cannot wait for a decision, and true is refused")
	cmd.Flags().StringVar(&f.meta, "meta", "{}", "notes about it as a JSON object, without secrets")
}

// given returns the fields whose flags were given, by the names of put_endpoint.
func (f *endpointFields) given(cmd *cobra.Command) (map[string]any, error) {
	fields := map[string]any{}
	for flag, field := range map[string]struct {
		name  string
		value any
	}{
		"rps": {"ingress_rps", f.rps}, "max-bytes": {"max_payload_bytes", f.maxBytes}, "moderated": {"moderated", f.moderated},
		"hash-window": {"hash_drop_window_sec", f.hashWindow.Seconds()}, "meta": {"meta", json.RawMessage(f.meta)},
	} {
		if cmd.Flags().Changed(flag) {
			fields[field.name] = field.value
		}
	}
	if !json.Valid([]byte(f.meta)) {
		return nil, misuse{fmt.Errorf("--meta holds no JSON: write an object, as in {\"owner\": \"cms\"}")}
	}
	return fields, nil
}

func secretFlags(cmd *cobra.Command, file, url *string) {
	cmd.Flags().StringVar(file, "secret-file", "", `file that holds a secret of your own, "-" for standard input (default one is made)`)
	cmd.Flags().StringVar(url, "url", "", "where senders reach the daemon, for the line to try (default http:// and AUTOPOST_LISTEN)")
}

func endpointSetCommand() *cobra.Command {
	var m manual
	var f endpointFields
	var enabled bool
	var signingRef string
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Change what is named of an endpoint; the rest stays",
		Args:  oneArgument("id of an endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := f.given(cmd)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("enabled") {
				fields["enabled"] = enabled
			}
			if cmd.Flags().Changed("signing-ref") {
				fields["signing_ref"] = signingRef
				if signingRef == "" {
					fields["signing_ref"] = nil
				}
			}
			if len(fields) == 0 {
				return misuse{fmt.Errorf("%s needs a flag for what shall change\nsee %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				if known, err := store.GetEndpoint(ctx, m.act.Workspace, args[0]); err != nil || known == nil {
					return unknownEndpoint(args[0], err)
				}
				change, err := store.PutEndpoint(ctx, m.act, args[0], fields)
				if err != nil {
					return err
				}
				return m.tellEndpoint(change, issued{})
			})
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&enabled, "enabled", true, "whether it takes posts")
	cmd.Flags().StringVar(&signingRef, "signing-ref", "", "auth_ref of its first signing key, empty to take signatures no more")
	m.flags(cmd)
	return cmd
}

// unknownEndpoint is the failure of whoever asked for one that is not there.
func unknownEndpoint(id string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("there is no endpoint %s in this workspace: see autopost endpoint list", id)
}

func endpointListCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "The endpoints of a workspace, the disabled ones too",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, workspace)
				if err != nil {
					return err
				}
				list, err := store.ListEndpoints(ctx, chosen, 10_000)
				if err != nil {
					return err
				}
				rows := make([][]any, 0, len(list))
				for _, e := range list {
					rows = append(rows, []any{e.EndpointID, e.Kind, e.Enabled, e.HasSecret, textOr(e.SigningRef), textOr(e.SourceID), e.IngressRPS, e.MaxPayloadBytes})
				}
				return printTable(os.Stdout, asJSON, []string{"endpoint_id", "kind", "enabled", "has_secret", "signing_ref", "source_id", "ingress_rps", "max_payload_bytes"}, rows)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func textOr(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func endpointShowCommand() *cobra.Command {
	var workspace string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "One endpoint, and what came in during the last hour",
		Args:  oneArgument("id of an endpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(cmd.Context(), func(ctx context.Context, store *pg.Store) error {
				chosen, err := chooseWorkspace(ctx, store, workspace)
				if err != nil {
					return err
				}
				raw, err := store.GetEndpoint(ctx, chosen, args[0])
				if err != nil || raw == nil {
					return unknownEndpoint(args[0], err)
				}
				if asJSON {
					fmt.Fprintln(os.Stdout, string(raw))
					return nil
				}
				return printFields(raw)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printFields prints an object as a table of its fields.
func printFields(raw json.RawMessage) error {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	rows := make([][]any, 0, len(object))
	for name, value := range object {
		rows = append(rows, []any{strings.ReplaceAll(name, "_", " "), plainText(value)})
	}
	slices.SortFunc(rows, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return printTable(os.Stdout, false, []string{"field", "value"}, rows)
}

// plainText is a JSON value for a person.
func plainText(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}
