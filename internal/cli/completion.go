package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"autopost/internal/api/rest"
	"autopost/internal/bench"
	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/localpg"
	"autopost/internal/pg"
	"autopost/internal/table"
)

// completionTimeout limits the wait after the Tab key.
const completionTimeout = 3 * time.Second

// names lists the possible values of an argument or flag. The workspace is empty if the
// command line does not name it.
type names func(context.Context, *pg.Store, string) ([]string, error)

// flagNames are the flags whose values are ids of the database.
var flagNames = map[string]names{
	"workspace": workspaceNames, "channel": channelNames, "endpoint": endpointNames, "source": sourceNames, "template-ref": templateNames,
	"auth-ref": credentialNames, "signing-ref": credentialNames, "credential": credentialNames, "to": credentialNames,
	"delivery": deliveryNames, "message": messageNames,
}

// flagValues are the values of flags that have the same ones in each command.
var flagValues = map[string][]string{
	"platform": {"telegram", "max", "x", "youtube", "webhook"}, "parse-mode": {"HTML", "Markdown", "None"},
	"role": {"viewer", "editor", "approver", "operator", "owner"}, "scope": rest.Scopes(),
	"send-mode": {"text", "media", "mixed"}, "window-mode": {"immediate", "windowed"}, "on-unknown": {"reconcile", "hold", "resend"}, "on-auth-lost": {"hold", "fail"},
	"min-severity": {"warning", "error", "critical"},
}

// commandValues are the values of flags by their command.
var commandValues = map[string][]string{
	"workspace add --status": {"active", "paused", "disabled"}, "workspace set --status": {"active", "paused", "disabled"},
	"source add --kind": {"rss", "api", "db"}, "source set --kind": {"rss", "api", "db"}, "source test --kind": {"rss", "api", "db"}, "source import --kind": {"rss"},
	"endpoint add --kind":     {"webhook_push", "telegram", "max", "pull_source"},
	"alert target add --kind": {"telegram", "max", "email", "webhook"}, "alert target set --kind": {"telegram", "max", "email", "webhook"},
	"media upload --kind": mediaKinds, "media upload --platform": {"max", "x"}, "webhook deliveries --status": sendStatuses,
	"credential set --platform": {"telegram", "max", "x", "youtube", "webhook", "smtp", "http", "postgres"}, "credential link --platform": {"x", "youtube"},
	"credential bind --platform": {"telegram", "max", "x", "youtube", "webhook", "smtp", "http", "postgres"},
	"serve --only":               daemon.Stages, "bench --only": bench.Goals(),
}

// argumentNames are the values of the first argument by its command, or by the parent of its command.
var argumentNames = map[string]names{
	"workspace": workspaceNames, "channel": channelNames, "template": templateNames, "source": sourceNames, "endpoint": endpointNames,
	"webhook": webhookNames, "credential": credentialNames, "budget": credentialNames, "group": groupNames, "alert target": alertTargetNames, "moderation chat": moderationChatNames,
	"alert ack": alertNames, "setting": settingNames, "apikey": keyNames, "why": deliveryNames, "deliveries": deliveryNames,
	"posts": messageNames, "submissions": submissionNames,
}

// completeNames adds shell completion for ids and for values that are known.
func completeNames(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeNames(cmd)
		path := strings.TrimPrefix(cmd.CommandPath(), "autopost ")
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			values, known := commandValues[path+" --"+flag.Name]
			if !known {
				values, known = flagValues[flag.Name]
			}
			if known {
				completeFlag(cmd, flag.Name, values)
			} else if list := flagNames[flag.Name]; list != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag.Name, completeFrom(cmd, list)) // the flag exists
			}
		})
		list := cmp.Or(listed(argumentNames[path]), listed(argumentNames[strings.TrimPrefix(cmd.Parent().CommandPath(), "autopost ")]))
		if list == nil || !takesName(cmd) || strings.HasSuffix(path, " add") {
			continue
		}
		complete := completeFrom(cmd, *list)
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && !strings.Contains(cmd.Use, "...") {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return complete(cmd, args, typed)
		}
	}
}

// listed returns a pointer to a list, nil for nil.
func listed(list names) *names {
	if list == nil {
		return nil
	}
	return &list
}

// takesName reports whether the first argument is an id or a name of a row.
func takesName(cmd *cobra.Command) bool {
	_, argument, _ := strings.Cut(cmd.Use, " ")
	argument, _, _ = strings.Cut(strings.Trim(argument, "["), " ")
	for _, name := range []string{"ID", "NAME", "GROUP", "KEY", "DELIVERY_ID", "ALERT_ID"} {
		if strings.TrimRight(argument, "].") == name {
			return true
		}
	}
	return false
}

// completeFlag adds shell completion for a flag with known values.
func completeFlag(cmd *cobra.Command, flag string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// completeFrom completes from the database. It completes nothing if the database is not
// running; completion never starts one.
func completeFrom(cmd *cobra.Command, list names) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		workspace := ""
		if flag := cmd.Flags().Lookup("workspace"); flag != nil {
			workspace = flag.Value.String()
		}
		found, err := withRunningStore(ctx, func(store *pg.Store) ([]string, error) { return list(ctx, store, workspace) })
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func withRunningStore(ctx context.Context, ask func(*pg.Store) ([]string, error)) (found []string, err error) {
	cfg, err := config.Load(os.Environ())
	if err != nil {
		return nil, err
	}
	if cfg.DatabaseURL.IsZero() && !localpg.Running(filepath.Join(cfg.DataDir, "pg")) {
		return nil, nil
	}
	err = withDatabase(ctx, func(ctx context.Context, _ config.Config, db *daemon.Database) error {
		store, err := db.Open(ctx)
		if err != nil {
			return err
		}
		defer store.Close()
		found, err = ask(store)
		return err
	})
	return found, err
}

// completedRows is the largest number of posts or deliveries that a completion lists, the newest.
const completedRows = 50

func workspaceNames(ctx context.Context, store *pg.Store, _ string) ([]string, error) {
	list, err := store.DescribeWorkspaces(ctx, listLimit)
	return namesOf(list, func(w pg.WorkspaceRow) string { return w.WorkspaceID }), err
}

// inWorkspace lists the names of the rows of a workspace, which is the only active one if none is named.
func inWorkspace[Row any](list func(*pg.Store, context.Context, string, int) ([]Row, error), limit int, name func(Row) string) names {
	return func(ctx context.Context, store *pg.Store, named string) ([]string, error) {
		workspace, err := chooseWorkspace(ctx, store, named)
		if err != nil {
			return nil, err
		}
		rows, err := list(store, ctx, workspace, limit)
		return namesOf(rows, name), err
	}
}

// namesOf returns the name of each row once.
func namesOf[Row any](rows []Row, name func(Row) string) []string {
	found := make([]string, 0, len(rows))
	for _, row := range rows {
		if n := name(row); !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	return found
}

// apiRow has the fields of rows of the API that completions show.
type apiRow struct {
	WebhookID    string `json:"webhook_id"`
	DeliveryID   string `json:"delivery_id"`
	MessageID    string `json:"message_id"`
	SubmissionID string `json:"submission_id"`
	ChannelID    string `json:"channel_id"`
	Status       string `json:"status"`
	Excerpt      string `json:"excerpt"`
}

// apiRows lists rows of the API.
func apiRows(function, kind string) func(*pg.Store, context.Context, string, int) ([]apiRow, error) {
	return func(store *pg.Store, ctx context.Context, workspace string, limit int) ([]apiRow, error) {
		return pg.List[apiRow](ctx, store, pg.Query{Function: function, Kind: kind, Workspace: workspace, Limit: limit})
	}
}

// described is a name with a description, which the shell shows beside it.
func described(name, text string) string { return name + "\t" + table.Sentence(text) }

var (
	channelNames    = inWorkspace((*pg.Store).ListChannels, listLimit, func(c pg.ChannelRow) string { return c.ChannelID })
	endpointNames   = inWorkspace((*pg.Store).ListEndpoints, listLimit, func(e pg.EndpointRow) string { return e.EndpointID })
	sourceNames     = inWorkspace((*pg.Store).ListSources, listLimit, func(s pg.SourceRow) string { return s.SourceID })
	templateNames   = inWorkspace((*pg.Store).ListTemplates, listLimit, func(t pg.TemplateRow) string { return t.TemplateID })
	credentialNames = inWorkspace((*pg.Store).ListCredentials, listLimit, func(c pg.CredentialRow) string { return c.AuthRef })
	groupNames      = inWorkspace((*pg.Store).ListRateGroups, listLimit, func(g pg.RateGroupRow) string { return g.RateGroup })
	alertNames      = inWorkspace((*pg.Store).ListAlerts, listLimit, func(a pg.AlertRow) string { return described(a.AlertID, a.What) })

	moderationChatNames = inWorkspace((*pg.Store).ListModerationChats, listLimit, func(c pg.ModerationChatRow) string { return c.ChatID })

	alertTargetNames = inWorkspace((*pg.Store).ListAlertTargets, listLimit, func(t pg.AlertTargetRow) string { return t.TargetID })
	webhookNames     = inWorkspace(apiRows("list_configuration", "webhook"), listLimit, func(r apiRow) string { return r.WebhookID })
	deliveryNames    = inWorkspace(apiRows("list_deliveries", ""), completedRows, func(r apiRow) string { return described(r.DeliveryID, r.ChannelID+", "+r.Status) })
	messageNames     = inWorkspace(apiRows("list_messages", ""), completedRows, func(r apiRow) string { return described(r.MessageID, r.Excerpt) })
	submissionNames  = inWorkspace(apiRows("list_submissions", ""), completedRows, func(r apiRow) string { return described(r.SubmissionID, r.Status) })
)

func keyNames(ctx context.Context, store *pg.Store, named string) ([]string, error) {
	workspace, err := chooseWorkspace(ctx, store, named)
	if err != nil {
		return nil, err
	}
	list, err := store.ListAPIKeys(ctx, workspace, "", listLimit)
	return namesOf(list, func(k pg.APIKeyRow) string { return described(k.KeyID, k.Name) }), err
}

func settingNames(ctx context.Context, store *pg.Store, _ string) ([]string, error) {
	list, err := store.ListSettings(ctx)
	return namesOf(list, func(s pg.SettingRow) string { return described(s.Key, s.Meaning) }), err
}
