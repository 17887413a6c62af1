package youtube

import (
	"strings"

	"autopost"
)

// metadata is the video as videos.insert takes it.
type metadata struct {
	Snippet struct {
		Title       string   `json:"title"`
		Description string   `json:"description"`
		Tags        []string `json:"tags,omitempty"`
		CategoryID  string   `json:"categoryId,omitempty"`
	} `json:"snippet"`
	Status struct {
		PrivacyStatus           string `json:"privacyStatus"`
		PublishAt               string `json:"publishAt,omitempty"`
		SelfDeclaredMadeForKids bool   `json:"selfDeclaredMadeForKids"`
		ContainsSyntheticMedia  bool   `json:"containsSyntheticMedia,omitempty"`
	} `json:"status"`
}

func (s *sender) metadata() metadata {
	v := s.wanted()
	var m metadata
	m.Snippet.Title = s.call.Delivery.RenderMeta.Title
	m.Snippet.Description = s.call.Delivery.Said(s.planned("video"))
	m.Snippet.Tags, m.Snippet.CategoryID = v.Tags, v.CategoryID
	m.Status.PrivacyStatus, m.Status.PublishAt = v.Privacy, v.PublishAt
	m.Status.SelfDeclaredMadeForKids, m.Status.ContainsSyntheticMedia = v.MadeForKids, v.SyntheticMedia
	return m
}

// wanted is what is said of the video.
func (s *sender) wanted() autopost.Video {
	if v := s.call.Delivery.RenderMeta.Video; v != nil {
		return *v
	}
	return autopost.Video{Privacy: "private"}
}

// videoType is the content's type as YouTube takes it.
func videoType(content *autopost.Content) string {
	if strings.HasPrefix(content.ContentType, "video/") {
		return content.ContentType
	}
	return "application/octet-stream"
}
