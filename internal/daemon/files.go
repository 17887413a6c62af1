package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"autopost"
	"autopost/internal/credential"
	"autopost/internal/ingest/filebus"
	"autopost/internal/pg"
)

// addFiles adds the stage of folders.
func (d *Daemon) addFiles(runID string) error {
	stage, err := filebus.New(filebus.Config{
		Store: d.store, Contents: d.blobs, Keys: d.vault, Finder: jobFinder{d.store, d.vault, d.adapters}, RunID: runID,
		Wake: d.wakeups.Files, Interval: fallbackInterval, Log: d.log,
	})
	if err != nil {
		return err
	}
	d.group.Add("files", stage)
	return nil
}

// findTimeout bounds a question to a platform about a file job.
const findTimeout = time.Minute

// jobFinder asks the platforms about file jobs.
type jobFinder struct {
	store    *pg.Store
	vault    *credential.Vault
	adapters map[autopost.Platform]autopost.Adapter
}

// FindJob implements filebus.Finder.
func (f jobFinder) FindJob(ctx context.Context, workspace, job, platform string) (autopost.Verdict, time.Time) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	searcher, ok := f.adapters[autopost.Platform(platform)].(autopost.Searcher)
	if !ok {
		return unclear("the platform cannot be asked; look at the channel, then correct or remove the state file")
	}
	raw, err := f.store.PlanPublishJob(ctx, workspace, job, platform)
	if err != nil {
		return unclear(err.Error())
	}
	var plan struct {
		Channel struct {
			ChannelID string `json:"channel_id"`
			TargetID  string `json:"target_id"`
			AuthRef   string `json:"auth_ref"`
		} `json:"channel"`
		Post *struct {
			Text string              `json:"text"`
			Meta autopost.RenderMeta `json:"meta"`
		} `json:"post"`
	}
	if err := json.Unmarshal(raw, &plan); err != nil || plan.Post == nil || len(plan.Post.Meta.Steps) == 0 {
		return unclear("the job has no post that could be looked for; correct its payload")
	}
	secret, err := f.vault.Credential(ctx, workspace, plan.Channel.AuthRef, autopost.Platform(platform))
	if err != nil {
		return unclear(fmt.Sprintf("open credential %s: %v", plan.Channel.AuthRef, err))
	}
	return searcher.Search(ctx, autopost.Call{Secret: secret, Delivery: autopost.Delivery{
		WorkspaceID: workspace, ChannelID: plan.Channel.ChannelID, Platform: autopost.Platform(platform), TargetID: plan.Channel.TargetID,
		AuthRef: plan.Channel.AuthRef, RenderedText: plan.Post.Text, RenderMeta: plan.Post.Meta,
	}})
}

// unclear is a verdict without an answer.
func unclear(message string) (autopost.Verdict, time.Time) {
	return autopost.Verdict{Error: &autopost.Error{Message: message}}, time.Time{}
}
