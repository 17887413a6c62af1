package youtube

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	defaultPage = 5
	maxPage     = 50
)

// listed is a page of a list.
func listed(kind string, items []any, total, size int) map[string]any {
	return map[string]any{
		"kind": "youtube#" + kind + "ListResponse", "etag": etag(kind + strconv.Itoa(total)), "items": items,
		"pageInfo": map[string]any{"totalResults": total, "resultsPerPage": size},
	}
}

func (c *call) pageSize() (int, *refusal) {
	given := c.query.Get("maxResults")
	if given == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 0 || n > maxPage {
		return 0, wrong("invalidParameter", "Invalid value '"+given+"'. Values must be within the range: [0, 50]", "maxResults")
	}
	return n, nil
}

func uploadsOf(c *channel) string { return "UU" + strings.TrimPrefix(c.ID, "UC") }

func (s *Server) listChannels(c *call) (outcome, *refusal) {
	parts, refused := c.parts()
	if refused != nil {
		return outcome{}, refused
	}
	if c.query.Get("mine") != "true" {
		return outcome{}, wrong("missingRequiredParameter", "No filter selected. Expected one of: mine", "mine")
	}
	of := c.token.channel
	item := map[string]any{"kind": "youtube#channel", "etag": etag(of.ID), "id": of.ID}
	for _, part := range parts {
		switch part {
		case "snippet":
			item["snippet"] = map[string]any{"title": of.Title, "description": ""}
		case "contentDetails":
			item["contentDetails"] = map[string]any{"relatedPlaylists": map[string]any{"likes": "", "uploads": uploadsOf(of)}}
		case "status":
			item["status"] = map[string]any{"privacyStatus": "public", "isLinked": true, "longUploadsStatus": "longUploadsUnspecified"}
		}
	}
	return outcome{body: listed("channel", []any{item}, 1, 1)}, nil
}

func (s *Server) listVideos(c *call) (outcome, *refusal) {
	parts, refused := c.parts()
	if refused != nil {
		return outcome{}, refused
	}
	given := c.listed("id")
	if given == "" {
		return outcome{}, wrong("missingRequiredParameter", "No filter selected. Expected one of: id", "id")
	}
	ids := strings.Split(given, ",")
	if len(ids) > maxPage {
		return outcome{}, wrong("invalidFilters", "The request specifies more than 50 video ids.", "id")
	}
	items := []any{}
	for _, id := range ids {
		v := s.videos[id]
		if v == nil {
			continue
		}
		owner := v.channel == c.token.channel
		if owner || v.privacy() != "private" {
			items = append(items, v.show(parts, owner))
		}
	}
	return outcome{body: listed("video", items, len(items), len(items))}, nil
}

// shown are the visible videos of a list, newest first.
func shown(videos []*video) []*video {
	now := time.Now()
	var out []*video
	for _, v := range slices.Backward(videos) {
		if !now.Before(v.listed) {
			out = append(out, v)
		}
	}
	return out
}

func (s *Server) listPlaylist(c *call) (outcome, *refusal) {
	parts, refused := c.parts()
	if refused != nil {
		return outcome{}, refused
	}
	size, refused := c.pageSize()
	if refused != nil {
		return outcome{}, refused
	}
	of, id := c.token.channel, c.query.Get("playlistId")
	var videos []*video
	switch {
	case id == uploadsOf(of):
		videos = shown(of.videos)
	case slices.Contains(of.Playlists, id):
		videos = of.playlists[id]
	default:
		return outcome{}, because("playlistNotFound")
	}
	from := 0
	if token := c.query.Get("pageToken"); token != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(token, "page"))
		if err != nil || n < 0 || n > len(videos) {
			return outcome{}, wrong("invalidPageToken", "The request specifies an invalid page token.", "pageToken")
		}
		from = n
	}
	to := min(len(videos), from+size)
	items := []any{}
	for i, v := range videos[from:to] {
		items = append(items, v.item(id, from+i, parts))
	}
	body := listed("playlistItem", items, len(videos), size)
	if to < len(videos) {
		body["nextPageToken"] = "page" + strconv.Itoa(to)
	}
	return outcome{body: body}, nil
}

// item returns a video as a playlist entry.
func (v *video) item(playlist string, position int, parts []string) map[string]any {
	at := v.date.UTC().Format(time.RFC3339)
	item := map[string]any{"kind": "youtube#playlistItem", "etag": etag(playlist + v.id), "id": etag("item" + playlist + v.id)}
	if slices.Contains(parts, "snippet") {
		item["snippet"] = map[string]any{
			"publishedAt": at, "channelId": v.channel.ID, "channelTitle": v.channel.Title, "title": v.meta.Snippet.Title,
			"description": v.meta.Snippet.Description, "playlistId": playlist, "position": position,
			"resourceId": map[string]any{"kind": "youtube#video", "videoId": v.id},
		}
	}
	if slices.Contains(parts, "contentDetails") {
		item["contentDetails"] = map[string]any{"videoId": v.id, "videoPublishedAt": at}
	}
	return item
}

func (s *Server) addToPlaylist(c *call) (outcome, *refusal) {
	parts, refused := c.parts()
	if refused != nil {
		return outcome{}, refused
	}
	var body struct {
		Snippet struct {
			PlaylistID string `json:"playlistId"`
			Position   *int   `json:"position"`
			ResourceID struct {
				Kind    string `json:"kind"`
				VideoID string `json:"videoId"`
			} `json:"resourceId"`
		} `json:"snippet"`
	}
	if refused := c.decode(&body); refused != nil {
		return outcome{}, refused
	}
	of, id := c.token.channel, body.Snippet.PlaylistID
	if !slices.Contains(of.Playlists, id) {
		return outcome{}, because("playlistNotFound")
	}
	v := s.videos[body.Snippet.ResourceID.VideoID]
	if v == nil || body.Snippet.ResourceID.Kind != "youtube#video" {
		return outcome{}, because("videoNotFound")
	}
	of.playlists[id] = append(of.playlists[id], v)
	return outcome{body: v.item(id, len(of.playlists[id])-1, parts)}, nil
}

// search searches the titles of the caller's videos.
func (s *Server) search(c *call) (outcome, *refusal) {
	parts, refused := c.parts()
	if refused != nil {
		return outcome{}, refused
	}
	size, refused := c.pageSize()
	if refused != nil {
		return outcome{}, refused
	}
	if c.query.Get("forMine") != "true" || c.query.Get("type") != "video" {
		return outcome{}, wrong("incompatibleParameters", "The simulator searches with forMine=true and type=video only.", "forMine")
	}
	items := []any{}
	for _, v := range shown(c.token.channel.videos) {
		if len(items) < size && strings.Contains(strings.ToLower(v.meta.Snippet.Title), strings.ToLower(c.query.Get("q"))) {
			item := v.show(parts, true)
			item["kind"], item["id"] = "youtube#searchResult", map[string]any{"kind": "youtube#video", "videoId": v.id}
			items = append(items, item)
		}
	}
	return outcome{body: listed("search", items, len(items), size)}, nil
}
