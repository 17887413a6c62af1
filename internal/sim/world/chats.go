package world

import (
	"encoding/json"
	"net/http"

	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
)

// maxChange is in bytes.
const maxChange = 1 << 16

// chatChange is what becomes of a chat: each field that is given happens.
type chatChange struct {
	Platform string  `json:"platform"`
	ChatID   int64   `json:"chat_id"`
	Access   *string `json:"access"`
	Title    string  `json:"title"`
	Text     string  `json:"text"`
}

// chats is what both messengers let happen to a chat.
type chats interface {
	Rename(chatID int64, title string)
	Say(chatID int64, text string)
}

// changeChat makes something happen in a chat that bots are told of.
func (w *World) changeChat(rw http.ResponseWriter, r *http.Request) {
	var change chatChange
	decoder := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxChange))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&change); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	var in chats
	switch change.Platform {
	case telegram.Platform:
		in = w.Telegram
		if change.Access != nil {
			w.Telegram.SetAccess(change.ChatID, telegram.Access(*change.Access))
		}
	case maxmessenger.Platform:
		in = w.MAX
		if change.Access != nil {
			w.MAX.SetAccess(change.ChatID, maxmessenger.Access(*change.Access))
		}
	default:
		http.Error(rw, "platform is neither telegram nor max", http.StatusBadRequest)
		return
	}
	if change.Title != "" {
		in.Rename(change.ChatID, change.Title)
	}
	if change.Text != "" {
		in.Say(change.ChatID, change.Text)
	}
	rw.WriteHeader(http.StatusNoContent)
}

// showPushes tells what was brought to webhooks.
func (w *World) showPushes(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	// Whoever asked and is gone cannot be told.
	_ = json.NewEncoder(rw).Encode(append(w.Telegram.Pushes(), w.MAX.Pushes()...))
}
