package youtube

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	sealPrefix = "sealed:"
	sealUse    = "autopost youtube upload session"
)

// seal encrypts the address of a session for the record, with a key derived from the lasting part of the
// credential.
func (s *sender) seal(uri string) (string, error) {
	box, err := s.box()
	if err != nil {
		return "", err
	}
	nonce := make([]byte, box.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	sealed := box.Seal(nonce, nonce, []byte(uri), []byte(s.call.Delivery.DeliveryID))
	return sealPrefix + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// open decrypts a recorded address.
func (s *sender) open(recorded string) (string, error) {
	box, err := s.box()
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(recorded, sealPrefix)
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if !ok || err != nil || len(sealed) < box.NonceSize() {
		return "", errors.New("the record is not sealed")
	}
	uri, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], []byte(s.call.Delivery.DeliveryID))
	return string(uri), err
}

func (s *sender) box() (cipher.AEAD, error) {
	raw, err := hkdf.Key(sha256.New, []byte(s.key.lasting()), nil, sealUse, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// record returns the ids that are recorded for a session.
func (s *sender) record(u *session) ([]string, *autopost.Error) {
	sealed, err := s.seal(u.uri)
	if err != nil {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeUnauthorized, "the credential cannot seal the session: "+err.Error())
	}
	return []string{sealed, u.began.UTC().Format(time.RFC3339)}, nil
}
