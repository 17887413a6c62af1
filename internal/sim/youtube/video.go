package youtube

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"autopost/internal/sim"
)

const (
	maxTitle       = 100  // characters
	maxDescription = 5000 // bytes
	maxTags        = 500  // characters, with commas and the quotes of tags with spaces
)

// categories are the valid category ids.
var categories = []string{"1", "2", "10", "15", "17", "19", "20", "22", "23", "24", "25", "26", "27", "28", "29"}

// metadata has the writable fields of a Video resource. Other fields are errors.
type metadata struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Snippet *snippet `json:"snippet"`
	Status  status   `json:"status"`

	RecordingDetails *struct {
		RecordingDate string `json:"recordingDate"`
	} `json:"recordingDetails"`
	Localizations map[string]struct {
		Title       string `json:"title"`
		Description string `json:"description"`
	} `json:"localizations"`
}

type snippet struct {
	Title                string   `json:"title"`
	Description          string   `json:"description"`
	Tags                 []string `json:"tags"`
	CategoryID           string   `json:"categoryId"`
	DefaultLanguage      string   `json:"defaultLanguage"`
	DefaultAudioLanguage string   `json:"defaultAudioLanguage"`
}

func (s *snippet) title() string {
	if s == nil {
		return ""
	}
	return s.Title
}

func (s *snippet) description() string {
	if s == nil {
		return ""
	}
	return s.Description
}

type status struct {
	PrivacyStatus           string `json:"privacyStatus"`
	PublishAt               string `json:"publishAt"`
	License                 string `json:"license"`
	Embeddable              *bool  `json:"embeddable"`
	PublicStatsViewable     *bool  `json:"publicStatsViewable"`
	SelfDeclaredMadeForKids bool   `json:"selfDeclaredMadeForKids"`
	ContainsSyntheticMedia  bool   `json:"containsSyntheticMedia"`
}

// video is a stored video.
type video struct {
	notified bool
	id       string
	channel  *channel
	date     time.Time
	meta     metadata
	media    sim.Media
	// locked videos stay private.
	locked    bool
	publishAt time.Time
	processed time.Time
	// failure and rejection are the reasons at the end of the processing.
	failure, rejection string
	thumbnail          sim.Media
	captions           []caption
	comments           []comment // oldest first
	found, listed      time.Time
	answered           bool
}

// validate returns the refusal of invalid metadata; nil if they are valid.
func (m *metadata) validate(parts []string) *refusal {
	var sn snippet
	if m.Snippet != nil {
		sn = *m.Snippet
	}
	named := func(part string, given bool) bool { return !given || slices.Contains(parts, part) }
	switch {
	case !named("snippet", m.Snippet != nil), !named("status", m.Status.any()), !named("recordingDetails", m.RecordingDetails != nil),
		!named("localizations", m.Localizations != nil):
		return wrong("unexpectedPart", "The body has a part that the parameter part does not name.", "part")
	case strings.TrimSpace(sn.Title) == "" || utf8.RuneCountInString(sn.Title) > maxTitle || strings.ContainsAny(sn.Title, "<>"):
		return wrong("invalidTitle", "The request metadata specifies an invalid or empty video title.", "")
	case len(sn.Description) > maxDescription || strings.ContainsAny(sn.Description, "<>"):
		return wrong("invalidDescription", "The request metadata specifies an invalid video description.", "")
	case tagsLength(sn.Tags) > maxTags || slices.ContainsFunc(sn.Tags, func(tag string) bool { return tag == "" || strings.ContainsAny(tag, "<>") }):
		return wrong("invalidTags", "The request metadata specifies invalid video keywords.", "")
	case sn.CategoryID != "" && !slices.Contains(categories, sn.CategoryID):
		return wrong("invalidCategoryId", "The request metadata specifies an invalid category ID.", "")
	case sn.DefaultLanguage != "" && !language.MatchString(sn.DefaultLanguage):
		return because("invalidVideoMetadata")
	case len(m.Localizations) > 0 && sn.DefaultLanguage == "":
		return wrong("defaultLanguageNotSet", "Localizations need the default language of the video.", "")
	case m.RecordingDetails != nil && !isInstant(m.RecordingDetails.RecordingDate):
		return because("invalidRecordingDetails")
	}
	return m.Status.validate()
}

var language = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

func isInstant(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// any reports whether the status has a field.
func (s *status) any() bool { return *s != (status{}) }

func (s *status) validate() *refusal {
	switch {
	case !slices.Contains([]string{"", "public", "unlisted", "private"}, s.PrivacyStatus):
		return wrong("badRequest", "Invalid value at 'status.privacyStatus': "+strconv.Quote(s.PrivacyStatus), "")
	case !slices.Contains([]string{"", "youtube", "creativeCommon"}, s.License):
		return wrong("badRequest", "Invalid value at 'status.license': "+strconv.Quote(s.License), "")
	case s.PublishAt != "" && (!isInstant(s.PublishAt) || s.PrivacyStatus != "private"):
		return wrong("invalidPublishAt", "The request metadata specifies an invalid scheduled publishing time.", "")
	}
	return nil
}

func tagsLength(tags []string) int {
	length := max(0, len(tags)-1)
	for _, tag := range tags {
		length += utf8.RuneCountInString(tag)
		if strings.Contains(tag, " ") {
			length += 2
		}
	}
	return length
}

// newVideo stores the video of a session.
func (s *Server) newVideo(u *session, media sim.Media) *video {
	now := time.Now()
	pace := s.core.Pace
	v := &video{
		id: s.newName("video", 11), channel: u.channel, date: now, meta: u.meta, media: media, locked: u.project.Unaudited, notified: u.notify,
		processed: now.Add(pace.Of(s.lags.Processing)), found: now.Add(pace.Of(s.lags.Found)), listed: now.Add(pace.Of(s.lags.Listed)),
	}
	v.applyStatus(u.meta.Status)
	switch {
	case slices.ContainsFunc(u.channel.videos, func(o *video) bool { return o.media.Digest == media.Digest }):
		v.rejection = "duplicate"
	case !isVideo(u.head):
		v.failure = "invalidFile"
	}
	s.videos[v.id] = v
	u.channel.videos = append(u.channel.videos, v)
	return v
}

// isVideo recognises a video by its first bytes.
func isVideo(head []byte) bool {
	return len(head) >= 12 && (bytes.Contains([]byte("ftyp moov mdat wide free"), head[4:8]) ||
		slices.ContainsFunc([]string{"\x1a\x45\xdf\xa3", "RIFF", "FLV", "\x00\x00\x01\xba", "G"}, func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }))
}

// applyStatus replaces the status. Missing fields get their defaults, as in the real API.
func (v *video) applyStatus(to status) {
	if to.PrivacyStatus == "" {
		to.PrivacyStatus = "public"
	}
	v.publishAt = time.Time{}
	if at, err := time.Parse(time.RFC3339, to.PublishAt); err == nil {
		v.publishAt = at
	}
	v.meta.Status = to
}

// privacy is the present privacy status.
func (v *video) privacy() string {
	switch {
	case v.locked:
		return "private"
	case !v.publishAt.IsZero() && !time.Now().Before(v.publishAt):
		return "public"
	}
	return v.meta.Status.PrivacyStatus
}

// uploadStatus is the state of the processing and the reason of a failure.
func (v *video) uploadStatus() (state, why string) {
	switch {
	case time.Now().Before(v.processed):
		return "uploaded", ""
	case v.failure != "":
		return "failed", v.failure
	case v.rejection != "":
		return "rejected", v.rejection
	}
	return "processed", ""
}

func (v *video) badges() []string {
	badges := []string{v.privacy()}
	if v.locked && v.meta.Status.PrivacyStatus != "private" {
		badges = append(badges, "locked: the project is not audited")
	}
	if !v.publishAt.IsZero() && v.privacy() == "private" && !v.locked {
		badges = append(badges, "scheduled for "+v.publishAt.UTC().Format(time.RFC3339))
	}
	if v.meta.Status.ContainsSyntheticMedia {
		badges = append(badges, "altered or synthetic")
	}
	return badges
}

// show returns the requested parts of the video.
func (v *video) show(parts []string, owner bool) map[string]any {
	out := map[string]any{"kind": "youtube#video", "etag": etag(v.id), "id": v.id}
	for _, part := range parts {
		switch part {
		case "snippet":
			out["snippet"] = v.showSnippet()
		case "status":
			out["status"] = v.showStatus()
		case "processingDetails":
			if owner {
				state, _ := v.uploadStatus()
				out["processingDetails"] = map[string]any{"processingStatus": map[string]string{
					"uploaded": "processing", "processed": "succeeded", "failed": "failed", "rejected": "terminated",
				}[state]}
			}
		}
	}
	return out
}

func (v *video) showSnippet() map[string]any {
	sn := v.meta.Snippet
	shown := map[string]any{
		"publishedAt": v.date.UTC().Format(time.RFC3339), "channelId": v.channel.ID, "channelTitle": v.channel.Title,
		"title": sn.Title, "description": sn.Description, "liveBroadcastContent": "none", "categoryId": sn.CategoryID,
		"thumbnails": v.showThumbnails(),
	}
	if sn.CategoryID == "" {
		shown["categoryId"] = "22"
	}
	if len(sn.Tags) > 0 {
		shown["tags"] = sn.Tags
	}
	if sn.DefaultLanguage != "" {
		shown["defaultLanguage"] = sn.DefaultLanguage
	}
	return shown
}

func (v *video) showStatus() map[string]any {
	st := v.meta.Status
	state, why := v.uploadStatus()
	shown := map[string]any{
		"uploadStatus": state, "privacyStatus": v.privacy(), "license": "youtube", "embeddable": st.Embeddable == nil || *st.Embeddable,
		"publicStatsViewable": st.PublicStatsViewable == nil || *st.PublicStatsViewable, "madeForKids": st.SelfDeclaredMadeForKids,
		"selfDeclaredMadeForKids": st.SelfDeclaredMadeForKids, "containsSyntheticMedia": st.ContainsSyntheticMedia,
	}
	if st.License != "" {
		shown["license"] = st.License
	}
	if !v.publishAt.IsZero() && v.privacy() == "private" && !v.locked {
		shown["publishAt"] = v.publishAt.UTC().Format(time.RFC3339)
	}
	switch state {
	case "failed":
		shown["failureReason"] = why
	case "rejected":
		shown["rejectionReason"] = why
	}
	return shown
}

func etag(of string) string { return sim.Digest([]byte(of))[:27] }

// updateVideo replaces the named parts. Fields that the body leaves out are deleted, as in the real API.
func (s *Server) updateVideo(c *call) (outcome, *refusal) {
	parts, refused := c.parts()
	if refused != nil {
		return outcome{}, refused
	}
	var m metadata
	if refused := c.decode(&m); refused != nil {
		return outcome{}, refused
	}
	v, refused := s.ownVideo(c, m.ID)
	if refused != nil {
		return outcome{}, refused
	}
	checked := m
	if !slices.Contains(parts, "snippet") && m.Snippet == nil {
		checked.Snippet = v.meta.Snippet
		parts = append(parts, "snippet")
	} else if m.Snippet == nil || m.Snippet.CategoryID == "" {
		return outcome{}, wrong("invalidCategoryId", "An update of the snippet needs its title and category ID.", "")
	}
	if refused := checked.validate(parts); refused != nil {
		return outcome{}, refused
	}
	if !v.publishAt.IsZero() && v.privacy() == "public" && m.Status.PublishAt != "" {
		return outcome{}, because("invalidPublishAt")
	}
	v.meta.Snippet = checked.Snippet
	if slices.Contains(parts, "status") {
		v.applyStatus(m.Status)
	}
	c.log.Edited = []string{v.id}
	c.log.Title, c.log.Text, c.log.Badges = v.meta.Snippet.Title, v.meta.Snippet.Description, v.badges()
	return outcome{body: v.show(parts, true)}, nil
}

func (s *Server) deleteVideo(c *call) (outcome, *refusal) {
	v, refused := s.ownVideo(c, c.query.Get("id"))
	if refused != nil {
		return outcome{}, refused
	}
	delete(s.videos, v.id)
	same := func(o *video) bool { return o == v }
	v.channel.videos = slices.DeleteFunc(v.channel.videos, same)
	for id, list := range v.channel.playlists {
		v.channel.playlists[id] = slices.DeleteFunc(list, same)
	}
	c.log.Removed = []string{v.id}
	return outcome{status: http.StatusNoContent}, nil
}

// ownVideo finds a video of the caller's channel.
func (s *Server) ownVideo(c *call, id string) (*video, *refusal) {
	v := s.videos[id]
	switch {
	case v == nil:
		return nil, because("videoNotFound")
	case v.channel != c.token.channel:
		return nil, because("forbidden")
	}
	return v, nil
}
