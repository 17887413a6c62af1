package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"autopost/internal/config"
	"autopost/internal/pg"
)

func draftsCommand() *cobra.Command {
	return parentCommand("drafts", "Manage posts that are not finished", draftsListCommand(), draftsShowCommand(), draftsSaveCommand(),
		draftCommand("submit", "Publish a draft once", draftsSubmit), draftCommand("remove", "Delete a draft", draftsRemove))
}

func draftsListCommand() *cobra.Command {
	var operator string
	cmd := reading{
		short:    "List your drafts",
		long:     "List the drafts of one person: by default of the login that runs the command.",
		example:  "  autopost drafts list",
		function: "list_drafts",
		columns: []column{
			timeColumn("changed", "updated_at"), fieldColumn("draft_id", "draft_id"), excerptColumn("excerpt"), detail(fieldColumn("media", "media")),
		},
		empty: `You have no draft: autopost drafts save --text "…" stores one.`,
		fixed: func() (map[string]any, error) {
			author, err := operatorOr(operator)
			return map[string]any{"author": author}, err
		},
	}.command(nil)
	operatorFlag(cmd, &operator)
	return cmd
}

func draftsShowCommand() *cobra.Command {
	var operator string
	cmd := showing("draft", "Show a draft with its post", "autopost drafts list", func(s *pg.Store, ctx context.Context, workspace, id string) (json.RawMessage, error) {
		author, err := operatorOr(operator)
		if err != nil {
			return nil, err
		}
		return s.GetDraft(ctx, workspace, id, author)
	})
	operatorFlag(cmd, &operator)
	return cmd
}

func draftsSaveCommand() *cobra.Command {
	var input postInput
	var m operatorFlags
	var id, endpoint string
	cmd := &cobra.Command{
		Use:   "save [FILE.json]",
		Short: "Store a draft from a file, stdin or flags",
		Long: `Store a post that is not finished, from FILE.json, from standard input (no FILE, or
"-"), or from flags. With --id the post replaces that of the draft.`,
		Example: `  autopost drafts save --text "The new bridge"
  autopost drafts save --id 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa post.json`,
		Args: atMostOneArgument("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			post, err := input.read(args)
			if err != nil {
				return err
			}
			fields := map[string]any{}
			if cmd.Flags().Changed("endpoint") {
				fields["endpoint_id"] = endpoint
			}
			m.subject = "draft " + id
			if err := m.requireAudit(cmd); err != nil {
				return err
			}
			return withConfiguredStore(cmd.Context(), func(ctx context.Context, cfg config.Config, store *pg.Store) error {
				if m.act.Workspace, err = chooseWorkspace(ctx, store, m.act.Workspace); err != nil {
					return err
				}
				if err := storeFiles(ctx, cfg, store, m.act.Workspace, post); err != nil {
					return err
				}
				return m.saveDraft(ctx, store, id, fields, post)
			})
		},
	}
	input.flags(cmd)
	draftFlags(cmd, &m)
	cmd.Flags().StringVar(&id, "id", "", "draft that the post replaces (default: a new one)")
	cmd.Flags().StringVar(&endpoint, "endpoint", "", "endpoint that the post is recorded for (default: the only enabled one)")
	return cmd
}

func (m *operatorFlags) saveDraft(ctx context.Context, store *pg.Store, id string, fields map[string]any, post payload) error {
	encoded, err := post.encode()
	if err != nil {
		return err
	}
	fields["payload"] = encoded
	raw, err := pg.Decode[json.RawMessage](store.PutDraft(ctx, m.act, id, fields))
	if err != nil {
		return asUsageError(err)
	}
	var answer struct {
		pg.ActAnswer

		DraftID string `json:"draft_id"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	if m.asJSON || answer.Reason != "" {
		answer.Raw = raw
		return m.print(answer.ActAnswer)
	}
	say("draft %s is stored; autopost drafts submit publishes it", answer.DraftID)
	return nil
}

// draftFlags adds the flags of a change of a draft, which needs no reason.
func draftFlags(cmd *cobra.Command, m *operatorFlags) {
	workspaceFlag(cmd, &m.act.Workspace)
	operatorFlag(cmd, &m.act.Operator)
	jsonFlag(cmd, &m.asJSON)
}

// draftCommand is a command for one draft of the person that runs it.
func draftCommand(use, short string, do func(ctx context.Context, store *pg.Store, m *operatorFlags, id string) error) *cobra.Command {
	var m operatorFlags
	cmd := &cobra.Command{
		Use: use + " ID", Short: short,
		Example: "  autopost drafts " + use + " 0198c5a1-7c3e-7a51-9d56-0f3ac1d3b1aa",
		Args:    oneID("draft", "autopost drafts list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = "draft " + args[0]
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error { return do(ctx, store, &m, args[0]) })
		},
	}
	draftFlags(cmd, &m)
	return cmd
}

func draftsSubmit(ctx context.Context, store *pg.Store, m *operatorFlags, id string) error {
	raw, err := pg.Decode[json.RawMessage](store.SubmitDraft(ctx, m.act, id, "command"))
	if err != nil {
		return asUsageError(err)
	}
	var refused pg.ActAnswer
	if err := json.Unmarshal(raw, &refused); err != nil {
		return err
	}
	if refused.Reason != "" {
		return m.print(refused)
	}
	return printPosted(raw, m.asJSON)
}

func draftsRemove(ctx context.Context, store *pg.Store, m *operatorFlags, id string) error {
	answer, err := pg.Decode[pg.ActAnswer](store.RemoveDraft(ctx, m.act, id))
	if err != nil {
		return err
	}
	return m.print(answer)
}
