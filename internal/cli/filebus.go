package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"autopost/internal/pg"
)

func filebusCommand() *cobra.Command {
	return parentCommand("filebus", "Manage the jobs that folders bring", filebusStatusCommand(), filebusExplainCommand(), filebusPrepareCommand(),
		jobDecisionCommand("approve", "Approve a file job", `--reason "checked"`), jobDecisionCommand("reject", "Reject a file job", `--reason "wrong cut"`))
}

// jobStatuses are the statuses of file jobs.
var jobStatuses = []string{"waiting", "approved", "publishing", "published", "rejected", "failed", "unknown"}

func filebusStatusCommand() *cobra.Command {
	return reading{
		use:   "status",
		short: "List file jobs and their statuses",
		long: `List file jobs and their statuses. With JOB only that job, on all its platforms. Run
autopost filebus explain JOB for what a job waits for.`,
		example:  "  autopost filebus status --status waiting",
		function: "list_publish_jobs",
		argument: "job_id",
		filters: []filterFlag{
			{name: "status", key: "status", usage: "only this status", values: jobStatuses},
			{name: "platform", key: "platform", usage: "only this platform"}, {name: "source", key: "source_id", usage: "only this source"},
		},
		columns: []column{
			fieldColumn("job", "job_id"), fieldColumn("platform", "platform"), fieldColumn("status", "status"), errorColumn("reason", "error"),
			detail(fieldColumn("title", "title")), detail(fieldColumn("source", "source_id")), detail(timeColumn("changed", "updated_at")), detail(fieldColumn("url", "post_url")),
		},
		empty: "No folder has brought a job: autopost source add files --kind filebus watches one.",
	}.command(nil)
}

// jobPlatform returns the platform of a job: the given one, or the only one on which the job is known.
func jobPlatform(ctx context.Context, store *pg.Store, workspace, job, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	rows, err := store.List(ctx, pg.Query{Function: "list_publish_jobs", Workspace: workspace, Filter: map[string]string{"job_id": job}, Limit: 2})
	if err != nil {
		return "", err
	}
	if len(rows) != 1 {
		return "", usageError{errors.New("--platform must be given, because the job is not known on exactly one platform: pass --platform youtube")}
	}
	var row struct {
		Platform string `json:"platform"`
	}
	if err := json.Unmarshal(rows[0], &row); err != nil {
		return "", fmt.Errorf("decode a file job: %w", err)
	}
	return row.Platform, nil
}

func jobPlatformFlag(cmd *cobra.Command, platform *string) {
	cmd.Flags().StringVar(platform, "platform", "", "platform of the job (default: the only one)")
}

func filebusExplainCommand() *cobra.Command {
	var f readFlags
	var platform string
	cmd := &cobra.Command{
		Use:   "explain JOB",
		Short: "Explain what a file job waits for",
		Long: `Explain one file job: what it waits for and what helps, its content, its decisions, and
the post that its channel would get.`,
		Example: "  autopost filebus explain demo-dance-loop-v1",
		Args:    oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, func(ctx context.Context, store *pg.Store, workspace string) error {
				on, err := jobPlatform(ctx, store, workspace, args[0], platform)
				if err != nil {
					return err
				}
				raw, err := store.GetPublishJob(ctx, workspace, args[0], on)
				if err != nil {
					return err
				}
				if raw == nil {
					return unknown("job "+args[0], "autopost filebus status")
				}
				plan, err := store.PlanPublishJob(ctx, workspace, args[0], on)
				if err != nil {
					return err
				}
				var row map[string]json.RawMessage
				if err := json.Unmarshal(raw, &row); err != nil {
					return fmt.Errorf("decode a file job: %w", err)
				}
				row["plan"] = plan
				if raw, err = json.Marshal(row); err != nil {
					return fmt.Errorf("encode a file job: %w", err)
				}
				return f.printObject(raw, "now", "plan")
			})
		},
	}
	f.addOne(cmd)
	jobPlatformFlag(cmd, &platform)
	return cmd
}

func jobDecisionCommand(decision, short, flags string) *cobra.Command {
	var m operatorFlags
	var platform, digest string
	cmd := &cobra.Command{
		Use:   decision + " JOB",
		Short: short,
		Long: short + `. A decision that comes before the job waits for it. With --digest
it counts only if the job is still as it was shown.`,
		Example: "  autopost filebus " + decision + " demo-dance-loop-v1 --platform youtube " + flags,
		Args:    oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.subject = "job " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				on, err := jobPlatform(ctx, store, act.Workspace, args[0], platform)
				if err != nil {
					return pg.ActAnswer{}, err
				}
				approval := map[string]any{"source": "command"}
				if digest != "" {
					approval["digest"] = digest
				}
				return pg.Decode[pg.ActAnswer](store.DecidePublishJob(ctx, act, args[0], on, decision, approval))
			})
		},
	}
	workspaceFlag(cmd, &m.act.Workspace)
	m.auditFlags(cmd)
	jobPlatformFlag(cmd, &platform)
	cmd.Flags().StringVar(&digest, "digest", "", "digest of the job that you saw")
	return cmd
}

// jobFields are the flags that describe a payload.
type jobFields struct {
	title, description, privacy, video, subtitles, thumbnail, config string
	tags                                                             []string
}

// fields returns publish_config and artifact_pointers.
func (f jobFields) fields(cmd *cobra.Command) (map[string]any, error) {
	config := map[string]any{}
	if f.config != "" {
		raw, err := textOf(f.config)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &config); err != nil || config == nil {
			return nil, usageError{errors.New(`--config must be a JSON object: write it like {"category_id": "22"}`)}
		}
	}
	pointers := map[string]any{"video": f.video}
	for name, given := range map[string]struct {
		into  map[string]any
		value any
	}{
		"title": {config, f.title}, "description": {config, f.description}, "privacy": {config, f.privacy}, "tag": {config, f.tags},
		"subtitles": {pointers, f.subtitles}, "thumbnail": {pointers, f.thumbnail},
	} {
		if key := map[string]string{"tag": "tags"}[name]; cmd.Flags().Changed(name) {
			if key == "" {
				key = name
			}
			given.into[key] = given.value
		}
	}
	return map[string]any{"publish_config": config, "artifact_pointers": pointers}, nil
}

func filebusPrepareCommand() *cobra.Command {
	var m operatorFlags
	var f jobFields
	var platform, source string
	cmd := &cobra.Command{
		Use:   "prepare JOB",
		Short: "Write the payload of an approved file job",
		Long: `Write the payload file of a job that was approved before it had one. Paths are relative
to the folder of the payload. A running daemon writes the file, and then takes the job.`,
		Example: `  autopost filebus prepare demo-dance-loop-v1 --platform youtube --title "Cat vibing" \
    --video ../../output/demo-dance-loop-v1/final.mp4`,
		Args: oneArgument("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if platform == "" || f.video == "" {
				return usageError{errors.New("--platform and --video must be given: pass --platform youtube --video ../../output/JOB/final.mp4")}
			}
			fields, err := f.fields(cmd)
			if err != nil {
				return err
			}
			m.subject = "job " + args[0]
			return m.run(cmd, func(ctx context.Context, store *pg.Store, act pg.OperatorAction) (pg.ActAnswer, error) {
				return pg.Decode[pg.ActAnswer](store.PreparePublishJob(ctx, act, source, args[0], platform, fields))
			})
		},
	}
	m.flags(cmd)
	cmd.Flags().StringVar(&platform, "platform", "", "platform of the job (required)")
	cmd.Flags().StringVar(&source, "source", "", "source of the job (default: the only one of kind filebus)")
	cmd.Flags().StringVar(&f.title, "title", "", "title of the post")
	cmd.Flags().StringVar(&f.description, "description", "", "text of the post")
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "tag of the video; repeatable")
	cmd.Flags().StringVar(&f.privacy, "privacy", "", "public, unlisted or private")
	completeFlag(cmd, "privacy", []string{"public", "unlisted", "private"})
	cmd.Flags().StringVar(&f.video, "video", "", "path of the video (required)")
	cmd.Flags().StringVar(&f.subtitles, "subtitles", "", "path of the subtitles")
	cmd.Flags().StringVar(&f.thumbnail, "thumbnail", "", "path of the thumbnail")
	cmd.Flags().StringVar(&f.config, "config", "", "more keys of publish_config as JSON, @FILE, or - for stdin")
	return cmd
}
