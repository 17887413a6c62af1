package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"
)

// draft is a post as a command is given it: a file, standard input, or flags.
type draft struct {
	text, parseMode, link, schedule, removeAt string
	media, tags, channels                     []string
}

func (d *draft) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.text, "text", "", "text of the post")
	cmd.Flags().StringVar(&d.parseMode, "parse-mode", "", "HTML, Markdown or None")
	cmd.Flags().StringVar(&d.link, "link", "", "link of the post")
	cmd.Flags().StringArrayVar(&d.media, "media", nil, "URL of a medium, or TYPE=URL with image, video, audio, file or animation; repeatable")
	cmd.Flags().StringArrayVar(&d.tags, "tag", nil, "tag of the post; repeatable")
	cmd.Flags().StringArrayVar(&d.channels, "channel", nil, "only this channel; repeatable")
	cmd.Flags().StringVar(&d.schedule, "scheduled-for", "", "not before this instant, as in 2026-12-01T10:00:00+03:00")
	cmd.Flags().StringVar(&d.removeAt, "remove-at", "", "take it down again at this instant, as in 2026-12-01T18:00:00+03:00")
}

// draftFile demands one file at most.
func draftFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return misuse{fmt.Errorf("%s takes one file at most\nsee %s --help", cmd.CommandPath(), cmd.CommandPath())}
	}
	return nil
}

// read returns the raw payload: of the flags if one is given, else of the file, else of standard input.
func (d *draft) read(args []string) (json.RawMessage, error) {
	flagged := d.text+d.parseMode+d.link+d.schedule+d.removeAt != "" || len(d.media)+len(d.tags)+len(d.channels) > 0
	if flagged && len(args) > 0 {
		return nil, misuse{errors.New("a post comes from a file or from flags, not from both")}
	}
	if flagged {
		return d.payload()
	}
	var raw []byte
	var err error
	from := "standard input"
	if len(args) == 0 || args[0] == "-" {
		raw, err = io.ReadAll(os.Stdin)
	} else {
		from = args[0]
		raw, err = os.ReadFile(from)
	}
	if err != nil {
		return nil, misuse{err}
	}
	if !json.Valid(raw) {
		return nil, misuse{fmt.Errorf("%s holds no JSON: give {\"text\": \"…\"}, or flags such as --text", from)}
	}
	return raw, nil
}

type draftMedium struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type draftRouting struct {
	IncludeChannels []string `json:"include_channels"`
}

func (d *draft) payload() (json.RawMessage, error) {
	var media []draftMedium
	for _, given := range d.media {
		m, err := medium(given)
		if err != nil {
			return nil, misuse{err}
		}
		media = append(media, m)
	}
	var routing *draftRouting
	if len(d.channels) > 0 {
		routing = &draftRouting{d.channels}
	}
	return json.Marshal(struct {
		Text      string        `json:"text,omitempty"`
		ParseMode string        `json:"parse_mode,omitempty"`
		Link      string        `json:"link,omitempty"`
		Media     []draftMedium `json:"media,omitempty"`
		Tags      []string      `json:"tags,omitempty"`
		Schedule  string        `json:"scheduled_for,omitempty"`
		RemoveAt  string        `json:"remove_at,omitempty"`
		Routing   *draftRouting `json:"routing,omitempty"`
	}{d.text, d.parseMode, d.link, media, d.tags, d.schedule, d.removeAt, routing})
}

// mediaTypes are those that the name of a file tells.
var mediaTypes = map[string]string{
	".jpg": "image", ".jpeg": "image", ".png": "image", ".webp": "image",
	".gif": "animation", ".mp4": "video", ".mov": "video", ".webm": "video",
	".mp3": "audio", ".m4a": "audio", ".ogg": "audio", ".pdf": "file", ".zip": "file",
}

// medium reads TYPE=URL, or an URL whose end tells the type.
func medium(given string) (draftMedium, error) {
	if kind, address, ok := strings.Cut(given, "="); ok && !strings.Contains(kind, ":") {
		return draftMedium{kind, address}, nil
	}
	u, err := url.Parse(given)
	if err == nil {
		if kind := mediaTypes[strings.ToLower(path.Ext(u.Path))]; kind != "" {
			return draftMedium{kind, given}, nil
		}
	}
	return draftMedium{}, fmt.Errorf("what is %q? write --media TYPE=URL with image, video, audio, file or animation", given)
}
