package credential

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"autopost"
)

var telegramToken = regexp.MustCompile(`^[0-9]{3,20}:[A-Za-z0-9_-]{10,100}$`)

// CheckShape says what is wrong with a secret before anybody is asked about it: the
// field, the reason and the remedy, and nothing of the secret. A platform that it does
// not know takes any text.
func CheckShape(platform autopost.Platform, s autopost.Secret) error {
	text := s.Reveal()
	switch {
	case strings.TrimSpace(text) == "":
		return shapeError("secret", "is empty", "give it on stdin or by --from-file")
	case platform == autopost.Telegram && !telegramToken.MatchString(text):
		return shapeError("bot token", "is not of the form 123456789:AAE…", "copy it whole from @BotFather")
	case platform == autopost.MAX && !printable(text):
		return shapeError("bot token", "has spaces or characters that no header may hold", "copy it whole from the bot's settings, without quotes")
	case platform == autopost.X && strings.HasPrefix(text, "{"):
		return checkX(text)
	case platform == autopost.X && !printable(text):
		return shapeError("access token", "has spaces or characters that no header may hold", "give the bare token, or a JSON object")
	case platform == autopost.YouTube:
		return checkFields(text, "client_id", "client_secret", "refresh_token")
	case platform == "webhook":
		return checkWebhook(text)
	case platform == "smtp" && !strings.Contains(text, ":"):
		return shapeError("mail server's login", "is not of the form user:password", "give both, with a colon between them")
	}
	return nil
}

func shapeError(field, reason, remedy string) error {
	return fmt.Errorf("%s: it %s: %s", field, reason, remedy)
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// checkX takes the keys of OAuth 1.0a, or the tokens of OAuth 2.0.
func checkX(text string) error {
	if strings.Contains(text, `"consumer_key"`) {
		return checkFields(text, "consumer_key", "consumer_secret", "access_token", "access_token_secret")
	}
	if strings.Contains(text, `"refresh_token"`) {
		return checkFields(text, "client_id", "refresh_token")
	}
	return checkFields(text, "access_token")
}

func checkFields(text string, names ...string) error {
	like := "write it like {\"" + strings.Join(names, "\": \"…\", \"") + "\": \"…\"}"
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return shapeError("secret", "is no JSON object", like)
	}
	for _, name := range names {
		value, _ := object[name].(string)
		if value == "" {
			return shapeError(name, "is missing, or no text", like)
		}
		if !printable(value) {
			return shapeError(name, "has spaces or characters that no header may hold", "copy it whole, without line breaks")
		}
	}
	return nil
}

func checkWebhook(text string) error {
	encoded, ok := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < 24 {
		return shapeError("signing secret", "is not whsec_ and 24 bytes or more in base64", `make one by: printf whsec_%s "$(openssl rand -base64 32)"`)
	}
	return nil
}
