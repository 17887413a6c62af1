package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func templateCommand() *cobra.Command {
	return family("template", "Write, list, show and try templates",
		templateListCommand(), templateShowCommand(), templatePutCommand(), templateEnableCommand(), templatePreviewCommand())
}

func templateListCommand() *cobra.Command {
	return listing("List the templates, each version; version 0 is built in", func(ctx context.Context, store *pg.Store, workspace string) ([]string, [][]any, error) {
		list, err := store.ListTemplates(ctx, workspace, listLimit)
		rows := make([][]any, 0, len(list))
		for _, t := range list {
			rows = append(rows, []any{t.TemplateID, t.Platform, t.Version, t.Enabled, excerptOf(t.Body)})
		}
		return []string{"template", "platform", "version", "enabled", "body"}, rows, err
	})
}

// platformFlag names the platform of a template.
func platformFlag(cmd *cobra.Command, platform *string) {
	cmd.Flags().StringVar(platform, "platform", "*", "platform of the template, * for one that serves all")
}

func templateShowCommand() *cobra.Command {
	var workspace, platform string
	var version int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the newest version of a template, or one that is named",
		Args:  oneArgument("name of a template"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				list, err := store.ListTemplates(ctx, workspace, listLimit)
				if err != nil {
					return err
				}
				at := slices.IndexFunc(list, func(t pg.TemplateRow) bool {
					return t.TemplateID == args[0] && t.Platform == platform && (!cmd.Flags().Changed("version") || t.Version == version)
				})
				if at < 0 {
					return fmt.Errorf("there is no such version of template %s for %s: autopost template list shows them", args[0], platform)
				}
				return showTemplate(list[at], asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	platformFlag(cmd, &platform)
	cmd.Flags().IntVar(&version, "version", 0, "version to show (default the newest)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func showTemplate(t pg.TemplateRow, asJSON bool) error {
	raw, err := json.Marshal(map[string]any{
		"template": t.TemplateID, "platform": t.Platform, "version": t.Version, "enabled": t.Enabled, "body": t.Body,
		"defaults": t.Defaults, "vars": t.Vars, "sanitize": t.Sanitize, "parse_mode": t.ParseMode, "max_length": t.MaxLength,
	})
	if err != nil {
		return err
	}
	if asJSON {
		fmt.Fprintln(os.Stdout, string(raw))
		return nil
	}
	return showObject(raw)
}

func templatePutCommand() *cobra.Command {
	p := newPutting("template")
	var platform, bodyFile string
	cmd := &cobra.Command{
		Use:   "put NAME",
		Short: "Write the next version of a template",
		Long: `Write the next version of a template; posts from now on use it, and what is rendered
stays. A version is written whole: what is not given is at its default.`,
		Args: oneArgument("name of a template"),
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := p.fields(cmd)
			if err != nil {
				return err
			}
			if bodyFile != "" {
				if _, twice := fields["body"]; twice {
					return misuse{errors.New("the body comes from --body-file or from another flag, not from both")}
				}
				body, err := os.ReadFile(bodyFile)
				if err != nil {
					return misuse{err}
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
				answer, err := store.ApplyConfig(ctx, p.act, []pg.ConfigItem{item})
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
				return p.tellPut("template "+item.ID, one)
			})
		},
	}
	workspaceFlag(cmd, &p.act.Workspace)
	platformFlag(cmd, &platform)
	cmd.Flags().StringVar(&bodyFile, "body-file", "", "file with the body")
	p.flags(cmd)
	return cmd
}

func templateEnableCommand() *cobra.Command {
	var m manual
	var platform string
	var version int
	var disable bool
	cmd := &cobra.Command{
		Use:   "enable NAME",
		Short: "Take a version of a template into use, or out of it; the newest enabled one is used",
		Args:  oneArgument("name of a template"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if version < 1 {
				return misuse{fmt.Errorf("%s needs --version: autopost template list shows them", cmd.CommandPath())}
			}
			return m.with(cmd, func(ctx context.Context, store *pg.Store) error {
				answer, err := store.EnableTemplate(ctx, m.act, args[0], platform, version, !disable)
				if err != nil {
					return err
				}
				one := pg.PutAnswer{Applied: answer.Applied, Reason: answer.Reason}
				if answer.Applied {
					one.Before, one.After = pg.Fields{"enabled": flag(disable)}, pg.Fields{"enabled": flag(!disable)}
				}
				if one.Raw, err = json.Marshal(answer); err != nil {
					return err
				}
				return m.tellPut(fmt.Sprintf("version %d of template %s", version, args[0]), one)
			})
		},
	}
	workspaceFlag(cmd, &m.act.Workspace)
	platformFlag(cmd, &platform)
	cmd.Flags().IntVar(&version, "version", 0, "version that is meant (required)")
	cmd.Flags().BoolVar(&disable, "disable", false, "take it out of use")
	cmd.Flags().StringVar(&m.act.Operator, "operator", "", "who acts, for the audit log (default the login name and host)")
	cmd.Flags().StringVar(&m.act.Reason, "reason", "", "why, for the audit log (required)")
	cmd.Flags().BoolVar(&m.asJSON, "json", false, "print JSON")
	return cmd
}

func flag(on bool) json.RawMessage {
	if on {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}

func templatePreviewCommand() *cobra.Command {
	var workspace, platform, body string
	var vars []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "preview NAME [POST.json]",
		Short: "Show how a post would look in a template",
		Long: `Show how a post would look in a template that is stored, or still being written
(--body), on a platform. The values come from --var, or from a post's template.vars.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return misuse{fmt.Errorf("%s takes the name of a template, and one file at most\nsee %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			payload, err := samplePost(args[1:], vars)
			if err != nil {
				return err
			}
			var written *pg.Template
			if body != "" {
				written = &pg.Template{Body: body}
			}
			return withWorkspace(cmd.Context(), workspace, func(ctx context.Context, store *pg.Store, workspace string) error {
				preview, err := store.PreviewTemplate(ctx, workspace, args[0], platform, written, payload)
				if err != nil {
					return err
				}
				return tellPreview(preview, asJSON)
			})
		},
	}
	workspaceFlag(cmd, &workspace)
	cmd.Flags().StringVar(&platform, "platform", "telegram", "platform to show it for")
	cmd.Flags().StringVar(&body, "body", "", "body to try instead of the stored one")
	cmd.Flags().StringArrayVar(&vars, "var", nil, "NAME=VALUE of a placeholder; repeatable")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// samplePost is the post of a file, or one that has these values alone.
func samplePost(files, vars []string) (json.RawMessage, error) {
	if len(files) > 0 {
		if len(vars) > 0 {
			return nil, misuse{errors.New("the values come from a file or from --var, not from both")}
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
			return nil, misuse{fmt.Errorf("--var %q: write NAME=VALUE", v)}
		}
		values[name] = value
	}
	return json.Marshal(map[string]any{"template": map[string]any{"vars": values}})
}

func tellPreview(p pg.Preview, asJSON bool) error {
	if asJSON {
		if err := json.NewEncoder(os.Stdout).Encode(p); err != nil {
			return err
		}
	}
	if p.Status != "ok" {
		return fmt.Errorf("it cannot be shown\n%s", faults(p.Errors))
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
