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

// CheckShape checks the form of a secret without asking the platform. The error names the field, the
// reason and the fix, and does not contain the secret. Any text is valid for an unknown platform.
func CheckShape(platform autopost.Platform, s autopost.Secret) error {
	text := s.Reveal()
	switch {
	case strings.TrimSpace(text) == "":
		return shapeError("secret", "is empty", "pass it on stdin or with --from-file")
	case platform == autopost.Telegram && !telegramToken.MatchString(text):
		return shapeError("bot token", "must have the form 123456789:AAE…", "copy all of it from @BotFather")
	case platform == autopost.MAX && !printable(text):
		return shapeError("bot token", "contains spaces or characters that a header must not contain", "copy all of it from the bot's settings, without quotes")
	case platform == autopost.X && strings.HasPrefix(text, "{"):
		return checkX(text)
	case platform == autopost.X && !printable(text):
		return shapeError("access token", "contains spaces or characters that a header must not contain", "pass only the token, or a JSON object")
	case platform == autopost.YouTube:
		return checkFields(text, "client_id", "client_secret", "refresh_token")
	case platform == "webhook":
		return checkWebhook(text)
	case platform == "smtp" && !strings.Contains(text, ":"):
		return shapeError("mail server's login", "must have the form user:password", "put a colon between them")
	}
	return nil
}

func shapeError(field, reason, remedy string) error {
	return fmt.Errorf("%s %s: %s", field, reason, remedy)
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// checkX accepts the keys of OAuth 1.0a, or the tokens of OAuth 2.0.
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
		return shapeError("secret", "is not a JSON object", like)
	}
	for _, name := range names {
		value, _ := object[name].(string)
		if value == "" {
			return shapeError(name, "is missing or not text", like)
		}
		if !printable(value) {
			return shapeError(name, "contains spaces or characters that a header must not contain", "copy all of it, without line breaks")
		}
	}
	return nil
}

func checkWebhook(text string) error {
	encoded, ok := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < 24 {
		return shapeError("signing secret", "must be whsec_ and at least 24 bytes in base64", `create one with: printf whsec_%s "$(openssl rand -base64 32)"`)
	}
	return nil
}
