package platforms

import (
	"encoding/json"
	"net/http"

	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
)

// maxChange is in bytes.
const maxChange = 1 << 16

// chatChange is a change of a chat. Each field that is set is applied.
type chatChange struct {
	Platform string  `json:"platform"`
	ChatID   int64   `json:"chat_id"`
	Access   *string `json:"access"`
	Title    string  `json:"title"`
	Text     string  `json:"text"`
}

// chats is implemented by both messengers.
type chats interface {
	Rename(chatID int64, title string)
	Say(chatID int64, text string)
}

// changeChat changes a chat and notifies the bots.
func (s *Server) changeChat(rw http.ResponseWriter, r *http.Request) {
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
		in = s.Telegram
		if change.Access != nil {
			s.Telegram.SetAccess(change.ChatID, telegram.Access(*change.Access))
		}
	case maxmessenger.Platform:
		in = s.MAX
		if change.Access != nil {
			s.MAX.SetAccess(change.ChatID, maxmessenger.Access(*change.Access))
		}
	default:
		http.Error(rw, "platform must be telegram or max", http.StatusBadRequest)
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

// showPushes lists the webhook deliveries.
func (s *Server) showPushes(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	// An error here means that the client is gone.
	_ = json.NewEncoder(rw).Encode(append(s.Telegram.Pushes(), s.MAX.Pushes()...))
}
