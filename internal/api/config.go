package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"autopost/internal/api/rest"
	"autopost/internal/configfile"
	"autopost/internal/problem"
)

// ConfigItem is one object of a configuration.
type ConfigItem struct {
	// Kind is the name of a resource of configfile.
	Kind   string                     `json:"kind"`
	ID     string                     `json:"id"`
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
	// Retire disables or removes it instead of writing it.
	Retire bool `json:"retire,omitempty"`
}

// ConfigChange is the change of one object of a configuration.
type ConfigChange struct {
	Kind    string                     `json:"kind" example:"channel" doc:"The kind of the object."`
	ID      string                     `json:"id" example:"news-ru" doc:"The id of the object."`
	Created bool                       `json:"created" doc:"Whether the object is new."`
	Before  map[string]json.RawMessage `json:"before"`
	After   map[string]json.RawMessage `json:"after"`
	// Note is a remaining manual step; usually "".
	Note string `json:"note,omitempty" doc:"What a person must still do."`
}

// ConfigAnswer is the answer to an applied configuration.
type ConfigAnswer struct {
	Applied bool `json:"applied" doc:"false with the reason unchanged if the file changes nothing."`
	DryRun  bool `json:"dry_run"`
	// Reason is "unchanged", or "invalid" with the index of the refused object in Item, and Errors.
	Reason string          `json:"reason,omitempty" example:"unchanged"`
	Item   int             `json:"item,omitempty" doc:"The index of an object that was refused."`
	Errors []problem.Fault `json:"errors,omitempty" nullable:"false"`
	Items  []ConfigChange  `json:"items,omitempty" nullable:"false" doc:"The changes in their order."`
	_      struct{}        `additionalProperties:"true"`
}

// configText is a configuration as YAML.
type configText struct {
	Text string `json:"text" example:"workspaces:\n  acme:\n    name: Acme\n" doc:"The configuration as YAML, without secrets. Keys in addresses of sources are masked."`
}

// configDiff are the changes that a file makes.
type configDiff struct {
	Applied bool           `json:"applied" doc:"false with the reason unchanged if the file changes nothing."`
	DryRun  bool           `json:"dry_run"`
	Reason  string         `json:"reason,omitempty" example:"unchanged"`
	Items   []ConfigChange `json:"items" nullable:"false" doc:"The changes in their order."`
	Unnamed []string       `json:"unnamed" nullable:"false" doc:"Objects that the file does not name; they stay."`
	Ignored []string       `json:"ignored" nullable:"false" doc:"Parts of the file that belong to the installation or to other workspaces."`
	Digest  string         `json:"digest" doc:"The SHA-256 of the changes. Apply them with it, so that nothing else is applied."`
}

// configFile is a file in a request.
type configFile struct {
	rest.Reasoned
	Format string `json:"format,omitempty" enum:"yaml,channels,feeds" doc:"yaml: a configuration; channels: a table of channels as comma-separated values; feeds: a list of feeds as OPML, or a table with the columns url, title and tags. yaml by default."`
	Text   string `json:"text" minLength:"1" doc:"The file."`
	Prune  bool   `json:"prune,omitempty" doc:"Disable what the file does not name. Quotas, budgets and credentials stay."`
	Digest string `json:"digest,omitempty" doc:"The digest of the diff that a person saw. Another diff is refused."`
}

type configInput struct {
	rest.AuditedWrite
	Body configFile
}

var configExample = map[string]any{"text": "workspaces:\n  acme:\n    name: Acme\n", "reason": "a better name"}

func registerConfig(d *server, sources SourceTester) {
	rest.Register(d.Server, rest.Operation{
		ID: "export-config", Method: http.MethodGet, Path: "/config", Summary: "Export the configuration of the workspace", Answer: configText{},
		Description: "As autopost config export writes it: values at their default are left out. The same configuration gives the same text.",
	}, func(ctx context.Context, _ *struct{}) (rest.Reply, error) {
		return d.Get(ctx, "The workspace does not exist.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			stored, masked, err := d.configOf(ctx, workspace)
			if err != nil {
				return nil, err
			}
			text, err := writeConfig(workspace, stored, masked)
			if err != nil {
				return nil, err
			}
			return json.Marshal(configText{text})
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "diff-config", Method: http.MethodPost, Path: "/config/diff", Summary: "Show the changes that a file makes", Answer: configDiff{}, Example: configExample,
		Description: "Changes nothing. Settings and other workspaces in the file are ignored.",
	}, func(ctx context.Context, in *configInput) (rest.Reply, error) {
		diff, _, err := d.diffConfig(ctx, sources, in.Body)
		return replyOf(diff, err)
	})
	rest.Register(d.Server, rest.Operation{
		ID: "apply-config", Method: http.MethodPost, Path: "/config/apply", Summary: "Apply a file to the workspace", Answer: ConfigAnswer{}, Example: configExample,
		Description: "Completely or not at all. A field that the file leaves out gets its default. A file must not bind a credential to a file or a variable of the server: " +
			"only the command autopost config apply may.",
	}, func(ctx context.Context, in *configInput) (rest.Reply, error) {
		if repeated, err := d.Repeated(ctx, in.Once); err != nil {
			return rest.Reply{}, err
		} else if repeated != nil {
			return *repeated, nil
		}
		diff, items, err := d.diffConfig(ctx, sources, in.Body)
		if err != nil {
			return rest.Reply{}, err
		}
		if in.Body.Digest != "" && in.Body.Digest != diff.Digest {
			return rest.Reply{}, problem.Refused.Says("Nothing was changed: the configuration changed since the diff. Read the new diff, then apply it.")
		}
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.ApplyConfig(ctx, a, items)
		})
	})
}

func replyOf(answer any, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, err
	}
	body, err := json.Marshal(answer)
	return rest.Reply{Body: body}, err
}

// configOf returns the configuration of a workspace, and what config_json of each source is for display.
func (d *server) configOf(ctx context.Context, workspace string) (stored []ConfigItem, masked map[string]json.RawMessage, err error) {
	if stored, err = d.db.ExportConfig(ctx, workspace); err != nil {
		return nil, nil, err
	}
	rows, err := d.db.List(ctx, rest.Query{Function: "list_configuration", Workspace: workspace, Kind: "source", Limit: 10_000})
	if err != nil {
		return nil, nil, err
	}
	masked = map[string]json.RawMessage{}
	for _, row := range rows {
		var s struct {
			SourceID string          `json:"source_id"`
			Config   json.RawMessage `json:"config_json"`
		}
		if err := json.Unmarshal(row, &s); err != nil {
			return nil, nil, err
		}
		masked[s.SourceID] = s.Config
	}
	return stored, masked, nil
}

func writeConfig(workspace string, stored []ConfigItem, masked map[string]json.RawMessage) (string, error) {
	w := configfile.Workspace{ID: workspace}
	for _, item := range stored {
		if shown := masked[item.ID]; item.Kind == "source" && shown != nil && item.Fields["config_json"] != nil {
			item.Fields["config_json"] = shown
		}
		w.Items = append(w.Items, configfile.Item{Kind: item.Kind, ID: item.ID, Fields: item.Fields})
	}
	var text bytes.Buffer
	err := configfile.Write(&text, configfile.File{Workspaces: []configfile.Workspace{w}})
	return text.String(), err
}

// diffConfig returns the changes of a file and its items.
func (d *server) diffConfig(ctx context.Context, sources SourceTester, file configFile) (configDiff, []ConfigItem, error) {
	workspace := rest.Caller(ctx).WorkspaceID
	diff := configDiff{DryRun: true, Items: []ConfigChange{}, Unnamed: []string{}, Ignored: []string{}}
	stored, masked, err := d.configOf(ctx, workspace)
	if err != nil {
		return diff, nil, err
	}
	read, err := readConfig(workspace, file, &diff)
	if file.Format == "feeds" {
		read, err = readFeeds(sources, file.Text, stored)
	}
	if err != nil {
		return diff, nil, rest.Wrong("body.text", "is not a valid file: "+err.Error(), "correct this line")
	}
	var items []ConfigItem
	for _, item := range read {
		items = append(items, ConfigItem{Kind: item.Kind, ID: item.ID, Fields: item.Fields})
	}
	unmask(items, stored, masked)
	if fault := foreignSecret(items, stored); fault != "" {
		return diff, nil, rest.Wrong("body.text", fault, "set the secret on the page of credentials, or apply the file by autopost config apply on the server")
	}
	for _, s := range stored {
		if file.Format == "channels" || file.Format == "feeds" || slices.ContainsFunc(items, func(i ConfigItem) bool { return sameItem(i, s) }) {
			continue
		}
		if file.Prune {
			items = append(items, ConfigItem{Kind: s.Kind, ID: s.ID, Retire: true})
		} else {
			diff.Unnamed = append(diff.Unnamed, s.Kind+" "+s.ID)
		}
	}
	err = d.planConfig(ctx, read, items, &diff)
	return diff, items, err
}

// planConfig asks the database for the changes of the items.
func (d *server) planConfig(ctx context.Context, read []configfile.Item, items []ConfigItem, diff *configDiff) error {
	written, err := d.db.ApplyConfig(ctx, rest.OperatorAction{Workspace: rest.Caller(ctx).WorkspaceID, Operator: rest.Caller(ctx).Identity(), Reason: "diff", DryRun: true}, items)
	if err != nil {
		return err
	}
	var answer ConfigAnswer
	if err := json.Unmarshal(written.Answer, &answer); err != nil {
		return err
	}
	if answer.Reason == "invalid" {
		var faults []problem.Fault
		for _, e := range answer.Errors {
			at := "it"
			if answer.Item < len(read) {
				at = read[answer.Item].PlaceOf(e.Field).String()
			}
			e.Reason = fmt.Sprintf("%s (%s %s, %s)", e.Reason, items[answer.Item].Kind, items[answer.Item].ID, at)
			faults = append(faults, e)
		}
		return problem.WrongRequest.Says("Nothing was changed: see errors.").With(faults...)
	}
	diff.Applied, diff.Reason = answer.Applied, answer.Reason
	diff.Items = append(diff.Items, answer.Items...)
	changes, err := json.Marshal(diff.Items)
	sum := sha256.Sum256(changes)
	diff.Digest = hex.EncodeToString(sum[:])
	return err
}

// readConfig returns the items of a file that belong to the workspace.
func readConfig(workspace string, file configFile, diff *configDiff) ([]configfile.Item, error) {
	switch file.Format {
	case "feeds":
		return nil, nil
	case "channels":
		return configfile.ReadTable("channels.csv", strings.NewReader(file.Text))
	}
	read, err := configfile.Read("autopost.yaml", strings.NewReader(file.Text))
	if err != nil {
		return nil, err
	}
	if read.Settings != nil {
		diff.Ignored = append(diff.Ignored, "settings")
	}
	var items []configfile.Item
	for _, w := range read.Workspaces {
		if w.ID == workspace {
			items = w.Items
		} else {
			diff.Ignored = append(diff.Ignored, "workspace "+w.ID)
		}
	}
	if items == nil {
		return nil, fmt.Errorf("autopost.yaml must contain workspace %s: add it below workspaces", workspace)
	}
	return items, nil
}

// readFeeds returns a source for each feed of a list whose address is not a source yet.
func readFeeds(sources SourceTester, text string, stored []ConfigItem) ([]configfile.Item, error) {
	known := map[string]bool{}
	for _, s := range stored {
		var config struct{ URL string }
		if s.Kind == "source" && json.Unmarshal(s.Fields["config_json"], &config) == nil {
			known[config.URL] = true
		}
	}
	feeds, err := sources.ReadFeeds(text)
	items := []configfile.Item{}
	for _, feed := range feeds {
		config, err := json.Marshal(map[string]any{"url": feed.URL, "tags": append([]string{}, feed.Tags...)})
		if err != nil {
			return nil, err
		}
		if !known[feed.URL] {
			items = append(items, configfile.Item{Kind: "source", ID: feed.ID, Fields: map[string]json.RawMessage{"kind": json.RawMessage(`"rss"`), "config_json": config},
				At: configfile.Place{File: feed.URL}})
		}
	}
	return items, err
}

// sameItem reports whether an item of a file is this stored one. "digest/*" names the template "digest".
func sameItem(i, stored ConfigItem) bool {
	return i.Kind == stored.Kind && (i.ID == stored.ID || i.Kind == "template" && i.ID == stored.ID+"/*")
}

// unmask puts the stored configuration of a source in the place of the masked one that the export shows.
func unmask(items, stored []ConfigItem, masked map[string]json.RawMessage) {
	for _, item := range items {
		at := slices.IndexFunc(stored, func(s ConfigItem) bool { return item.Kind == "source" && sameItem(item, s) })
		if at >= 0 && equalJSON(item.Fields["config_json"], masked[item.ID]) {
			item.Fields["config_json"] = stored[at].Fields["config_json"]
		}
	}
}

// foreignSecret returns why a credential of the file must not be bound; "" if all may. A file that comes over the network
// must not name files and variables of the server, nor the secret of another credential.
func foreignSecret(items, stored []ConfigItem) string {
	for _, item := range items {
		if item.Kind != "credential" {
			continue
		}
		at := slices.IndexFunc(stored, func(s ConfigItem) bool { return sameItem(item, s) })
		if at >= 0 && equalJSON(item.Fields["secret_ref"], stored[at].Fields["secret_ref"]) && equalJSON(item.Fields["hosts"], stored[at].Fields["hosts"]) {
			continue
		}
		var ref string
		_ = json.Unmarshal(item.Fields["secret_ref"], &ref) // the database checks the type
		if ref != "sealed:"+item.ID {
			return fmt.Sprintf("credential %s must have secret_ref sealed:%s", item.ID, item.ID)
		}
	}
	return ""
}

// equalJSON reports whether two values are equal. A missing value equals null.
func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	left, _ := json.Marshal(x) // decoded JSON can be encoded
	right, _ := json.Marshal(y)
	return bytes.Equal(left, right)
}
