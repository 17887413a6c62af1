package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/api"
	"autopost/internal/pg"
	"autopost/internal/table"
)

func templateCommand() *cobra.Command {
	return parentCommand("template", "Manage templates",
		templateListCommand(), templateShowCommand(), templatePutCommand(), templateSwitchCommand("enable", true), templateSwitchCommand("disable", false), templatePreviewCommand())
}

func templateListCommand() *cobra.Command {
	return listing("List all versions of the templates", "  autopost template list", func(ctx context.Context, store *pg.Store, workspace string) ([]pg.TemplateRow, table.Table, error) {
		list, err := store.ListTemplates(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, t := range list {
			rows = append(rows, []any{t.TemplateID, t.Platform, t.Version, t.Enabled, table.Excerpt(t.Body)})
		}
		return list, table.Table{
			Columns: []string{"template", "platform", "version", "enabled", "body"}, Rows: rows,
			Empty: "No template: run autopost template put NAME --body '{title}'.",
		}, err
	})
}

func platformFlag(cmd *cobra.Command, platform *string) {
	cmd.Flags().StringVar(platform, "platform", "*", "platform of the template; * is the template for all platforms")
}

func templateShowCommand() *cobra.Command {
	var f readFlags
	var platform string
	var version int
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show the newest or a given version of a template",
		Example: "  autopost template show digest --version 2",
		Args:    oneArgument("template name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.ListTemplates(ctx, workspace, listLimit)
				if err != nil {
					return err
				}
				at := slices.IndexFunc(list, func(t pg.TemplateRow) bool {
					return t.TemplateID == args[0] && t.Platform == platform && (!cmd.Flags().Changed("version") || t.Version == version)
				})
				if at < 0 {
					return unknown(fmt.Sprintf("version of template %s for platform %s", args[0], platform), "autopost template list")
				}
				return f.printTemplate(list[at])
			})
		},
	}
	platformFlag(cmd, &platform)
	cmd.Flags().IntVar(&version, "version", 0, "version to show (default: the newest)")
	f.addOne(cmd)
	return cmd
}

func (f *readFlags) printTemplate(t pg.TemplateRow) error {
	raw, err := json.Marshal(map[string]any{
		"template": t.TemplateID, "platform": t.Platform, "version": t.Version, "enabled": t.Enabled, "body": t.Body,
		"defaults": t.Defaults, "vars": t.Vars, "sanitize": t.Sanitize, "parse_mode": t.ParseMode, "max_length": t.MaxLength,
	})
	if err != nil {
		return err
	}
	return f.printObject(raw)
}

func templatePutCommand() *cobra.Command {
	p := newUpsert("template")
	var platform, bodyFile string
	cmd := &cobra.Command{
		Use:   "put NAME",
		Short: "Write the next version of a template",
		Long: `Write the next version of a template. New posts use it; rendered texts stay as they are.
A version is complete: a field that is not given has its default.`,
		Example: `  autopost template put digest --body '{title}: {summary?}' --reason "shorter"`,
		Args:    oneArgument("template name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := p.fields(cmd)
			if err != nil {
				return err
			}
			if bodyFile != "" {
				if _, twice := fields["body"]; twice {
					return usageError{errors.New("--body-file must not be used with --body: remove one of the two")}
				}
				body, err := os.ReadFile(bodyFile)
				if err != nil {
					return usageError{err}
				}
				if fields["body"], err = json.Marshal(strings.TrimRight(string(body), "\n")); err != nil {
					return err
				}
			}
			item := pg.ConfigItem{Kind: "template", ID: args[0], Fields: fields}
			if platform != "*" {
				item.ID += "/" + platform
			}
			return p.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.ConfigAnswer](store.ApplyConfig(ctx, p.act, []pg.ConfigItem{item}))
				if err != nil {
					return err
				}
				one := pg.PutAnswer{Applied: answer.Applied, Reason: answer.Reason, Errors: answer.Errors}
				if answer.Applied {
					one.Created, one.Before, one.After = answer.Items[0].Created, answer.Items[0].Before, answer.Items[0].After
				}
				if one.Raw, err = json.Marshal(answer); err != nil {
					return err
				}
				return p.printPut("template "+item.ID, one)
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	platformFlag(cmd, &platform)
	cmd.Flags().StringVar(&bodyFile, "body-file", "", "`file` with the body, instead of --body")
	p.flags(cmd)
	return cmd
}

func templateSwitchCommand(verb string, enabled bool) *cobra.Command {
	var m operatorFlags
	var platform string
	var version int
	short := strings.ToUpper(verb[:1]) + verb[1:] + " a version of a template"
	cmd := &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Long:    short + ". Posts use the newest enabled version.",
		Example: "  autopost template " + verb + ` digest --version 3 --reason "typo in version 3"`,
		Args:    oneArgument("template name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if version < 1 {
				return usageError{fmt.Errorf("--version must be at least 1, got %d: run autopost template list", version)}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := pg.Decode[pg.TemplateAnswer](store.EnableTemplate(ctx, m.act, api.TemplateKey{ID: args[0], Platform: platform}, version, enabled))
				if err != nil {
					return err
				}
				one := pg.PutAnswer{Applied: answer.Applied, Reason: answer.Reason}
				if answer.Applied {
					one.Before, one.After = pg.Fields{"enabled": jsonBool(!enabled)}, pg.Fields{"enabled": jsonBool(enabled)}
				}
				if one.Raw, err = json.Marshal(answer); err != nil {
					return err
				}
				return m.printPut(fmt.Sprintf("version %d of template %s", version, args[0]), one)
			})
		},
	}
	workspaceFlag(cmd, &m.act.Workspace)
	platformFlag(cmd, &platform)
	cmd.Flags().IntVar(&version, "version", 0, "version to "+verb+" (required)")
	m.auditFlags(cmd)
	return cmd
}

func jsonBool(on bool) json.RawMessage {
	if on {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}

func templatePreviewCommand() *cobra.Command {
	var f readFlags
	var platform, body string
	var vars []string
	cmd := &cobra.Command{
		Use:   "preview NAME [POST.json]",
		Short: "Render a post with a template",
		Long: `Render a post with a stored template, or with the body of --body, for one platform. The
values come from --var, or from template.vars of the post.`,
		Example: `  autopost template preview digest --platform max --var title=News --var link=https://example.org`,
		Args:    oneWithFile("template name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			payload, err := samplePost(args[1:], vars)
			if err != nil {
				return err
			}
			var written *pg.Template
			if body != "" {
				written = &pg.Template{Body: body}
			}
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				raw, err := store.PreviewTemplate(ctx, workspace, api.TemplateKey{ID: args[0], Platform: platform}, written, payload)
				if err != nil {
					return err
				}
				var preview pg.Preview
				if err := json.Unmarshal(raw, &preview); err != nil {
					return fmt.Errorf("decode the answer: %w", err)
				}
				return printPreview(preview, f.asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&platform, "platform", "telegram", "platform to render for")
	cmd.Flags().StringVar(&body, "body", "", "body to use instead of the stored one")
	cmd.Flags().StringArrayVar(&vars, "var", nil, "value of a placeholder as NAME=VALUE; repeatable")
	f.addOne(cmd)
	return cmd
}

// samplePost returns the post of a file, or a post with only these values.
func samplePost(files, vars []string) (json.RawMessage, error) {
	if len(files) > 0 {
		if len(vars) > 0 {
			return nil, usageError{errors.New("--var must not be used with FILE: remove one of the two")}
		}
		fields, err := readFields(files[0])
		if err != nil {
			return nil, err
		}
		return json.Marshal(fields)
	}
	values := map[string]string{}
	for _, v := range vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--var must be NAME=VALUE, got %q: add the equals sign", v)}
		}
		values[name] = value
	}
	return json.Marshal(map[string]any{"template": map[string]any{"vars": values}})
}

func printPreview(p pg.Preview, asJSON bool) error {
	if asJSON {
		if err := printJSON(p); err != nil {
			return err
		}
	}
	if p.Status != "ok" {
		return fmt.Errorf("the post cannot be rendered\n%s", fieldErrorLines(p.Errors))
	}
	if !asJSON {
		fmt.Fprintln(os.Stdout, p.Text)
		cut := ""
		if p.Truncated {
			cut = ", cut"
		}
		fmt.Fprintf(os.Stderr, "%s: %d of %d%s\n", p.Version, p.Length, p.Limit, cut)
	}
	return nil
}
