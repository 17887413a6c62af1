package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
	"autopost/internal/table"
)

func endpointCommand() *cobra.Command {
	return parentCommand("endpoint", "Manage endpoints, the entry points for posts",
		endpointAddCommand(), endpointListCommand(), endpointShowCommand(), endpointSetCommand(), endpointRotateCommand(),
		endpointSwitchCommand("enable", "Accept the posts of an endpoint", func(s *pg.Store, ctx context.Context, act pg.OperatorAction, endpoint string) (pg.Written, error) {
			return enableEndpoint(ctx, s, act, endpoint)
		}),
		endpointSwitchCommand("disable", "Reject all posts of an endpoint", (*pg.Store).DisableEndpoint), endpointTestCommand())
}

// endpointFields are the flags of the fields that can change.
type endpointFields struct {
	rps        float64
	maxBytes   int
	hashWindow time.Duration
	moderated  bool
	meta       string
}

func (f *endpointFields) flags(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.rps, "ingress-rps", 5, "accepted posts per second")
	cmd.Flags().IntVar(&f.maxBytes, "max-payload-bytes", 262144, "largest accepted body in bytes")
	durationFlag(cmd, &f.hashWindow, "hash-drop-window", 10*time.Second, "time in which the same body without source_ref is a duplicate")
	cmd.Flags().BoolVar(&f.moderated, "moderated", false, "whether a person decides about its posts")
	cmd.Flags().StringVar(&f.meta, "meta", "{}", "notes as a JSON object, without secrets")
}

// given returns the fields of the given flags, by their names in put_endpoint.
func (f *endpointFields) given(cmd *cobra.Command) (map[string]any, error) {
	fields := map[string]any{}
	for flag, field := range map[string]struct {
		name  string
		value any
	}{
		"ingress-rps": {"ingress_rps", f.rps}, "max-payload-bytes": {"max_payload_bytes", f.maxBytes}, "moderated": {"moderated", f.moderated},
		"hash-drop-window": {"hash_drop_window_sec", f.hashWindow.Seconds()}, "meta": {"meta", json.RawMessage(f.meta)},
	} {
		if cmd.Flags().Changed(flag) {
			fields[field.name] = field.value
		}
	}
	if !json.Valid([]byte(f.meta)) {
		return nil, usageError{errors.New(`--meta must be a JSON object: write it like {"owner": "cms"}`)}
	}
	return fields, nil
}

func secretFlags(cmd *cobra.Command, file, url *string) {
	cmd.Flags().StringVar(file, "secret-file", "", "`file` with your own secret, - reads stdin (default: a generated secret)")
	cmd.Flags().StringVar(url, "url", "", "base URL of the daemon for the printed curl command (default: http:// and AUTOPOST_LISTEN)")
}

func endpointSetCommand() *cobra.Command {
	var m operatorFlags
	var f endpointFields
	var enabled bool
	var signingRef string
	cmd := &cobra.Command{
		Use:     "set ID",
		Short:   "Change an endpoint",
		Example: `  autopost endpoint set cms --ingress-rps 20 --reason "more traffic"`,
		Args:    oneArgument("endpoint id"),
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
				return usageError{fmt.Errorf("at least one field flag must be set: run %s --help", cmd.CommandPath())}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				known, err := store.GetEndpoint(ctx, m.act.Workspace, args[0])
				if err != nil {
					return err
				}
				if known == nil {
					return unknownEndpoint(args[0])
				}
				change, err := pg.Decode[pg.EndpointChange](store.PutEndpoint(ctx, m.act, args[0], fields))
				if err != nil {
					return err
				}
				return m.printEndpointChange(change, newSecret{})
			})
		},
	}
	f.flags(cmd)
	rateNames(cmd, "ingress-rps")
	cmd.Flags().BoolVar(&enabled, "enabled", true, "whether it accepts posts")
	cmd.Flags().StringVar(&signingRef, "signing-ref", "", "credential name of its first signing key; empty ends signed requests")
	m.flags(cmd)
	return cmd
}

func unknownEndpoint(id string) error { return unknown("endpoint "+id, "autopost endpoint list") }

func endpointListCommand() *cobra.Command {
	return listing("List the endpoints of a workspace", "  autopost endpoint list",
		func(ctx context.Context, store *pg.Store, workspace string) ([]pg.EndpointRow, table.Table, error) {
			list, err := store.ListEndpoints(ctx, workspace, listLimit)
			rows := make([][]any, 0, len(list))
			for _, e := range list {
				rows = append(rows, []any{e.EndpointID, e.Kind, e.Enabled, e.HasSecret, e.IngressRPS, e.MaxPayloadBytes, e.SigningRef, e.SourceID})
			}
			return list, table.Table{
				Columns: []string{"endpoint_id", "kind", "enabled", "has_secret", "ingress_rps", "max_payload_bytes", "signing_ref", "source_id"},
				Details: []string{"max_payload_bytes", "signing_ref", "source_id"}, Rows: rows,
				Empty: "No endpoint: run autopost endpoint add ID to accept posts.",
			}, err
		})
}

func endpointShowCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show an endpoint and its traffic of the last hour",
		Example: "  autopost endpoint show cms",
		Args:    oneArgument("endpoint id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.GetEndpoint(ctx, workspace, args[0])
				if err != nil {
					return err
				}
				if raw == nil {
					return unknownEndpoint(args[0])
				}
				return f.printObject(raw)
			})
		},
	}
	f.addOne(cmd)
	return cmd
}
