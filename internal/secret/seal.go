package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"

	"autopost"
)

// Binding identifies the credential of a sealed secret. The secret opens with the same binding only.
type Binding struct {
	Workspace, AuthRef string
	Version            int
}

// bind returns the associated data of the seals. Quotes keep two bindings from giving the same bytes.
func (b Binding) bind() []byte {
	return fmt.Appendf(nil, "%q|%q|%d", b.Workspace, b.AuthRef, b.Version)
}

// Sealed is an encrypted secret, as the database stores it.
type Sealed struct {
	// KeyID is the id of the master key that wraps WrappedKey. WrappedKey is the data key of Text.
	KeyID      string
	WrappedKey []byte
	Text       []byte
}

// Seal encrypts a secret for its binding with the first master key.
func (r *Keyring) Seal(binding Binding, secret autopost.Secret) (Sealed, error) {
	keys, err := r.keys()
	if err != nil {
		return Sealed{}, err
	}
	data := newKey().key
	wrapped, err := encrypt(keys[0].key, data, binding)
	if err != nil {
		return Sealed{}, err
	}
	text, err := encrypt(data, []byte(secret.Reveal()), binding)
	return Sealed{KeyID: keys[0].id, WrappedKey: wrapped, Text: text}, err
}

// Open decrypts a secret. It fails if the master key is not in the file, or if the row was changed or
// moved.
func (r *Keyring) Open(binding Binding, sealed Sealed) (autopost.Secret, error) {
	data, err := r.unwrap(binding, sealed)
	if err != nil {
		return autopost.Secret{}, err
	}
	text, err := decrypt(data, sealed.Text, binding)
	if err != nil {
		return autopost.Secret{}, err
	}
	return autopost.NewSecret(string(text)), nil
}

// Rewrap wraps the data key with the first master key. It does not decrypt the secret.
func (r *Keyring) Rewrap(binding Binding, sealed Sealed) (Sealed, error) {
	data, err := r.unwrap(binding, sealed)
	if err != nil {
		return Sealed{}, err
	}
	keys, err := r.keys()
	if err != nil {
		return Sealed{}, err
	}
	sealed.KeyID = keys[0].id
	sealed.WrappedKey, err = encrypt(keys[0].key, data, binding)
	return sealed, err
}

func (r *Keyring) unwrap(binding Binding, sealed Sealed) ([]byte, error) {
	master, err := r.find(sealed.KeyID)
	if err != nil {
		return nil, err
	}
	return decrypt(master.key, sealed.WrappedKey, binding)
}

// DataKey seals many texts of one binding, the raw payloads of a workspace.
type DataKey struct {
	key     []byte
	binding Binding
}

// NewDataKey returns a random data key, and how the database stores it.
func (r *Keyring) NewDataKey(binding Binding) (DataKey, Sealed, error) {
	keys, err := r.keys()
	if err != nil {
		return DataKey{}, Sealed{}, err
	}
	data := newKey().key
	wrapped, err := encrypt(keys[0].key, data, binding)
	return DataKey{data, binding}, Sealed{KeyID: keys[0].id, WrappedKey: wrapped}, err
}

// OpenDataKey returns a data key from its stored form.
func (r *Keyring) OpenDataKey(binding Binding, sealed Sealed) (DataKey, error) {
	data, err := r.unwrap(binding, sealed)
	return DataKey{data, binding}, err
}

// Seal encrypts a text. It opens under the same name only.
func (k DataKey) Seal(name string, text []byte) ([]byte, error) {
	box, err := boxOf(k.key)
	if err != nil {
		return nil, err
	}
	return box.Seal(nil, nil, text, k.bind(name)), nil //nolint:gosec // the AEAD generates its own random nonce
}

// Open decrypts a text that Seal encrypted under the same name.
func (k DataKey) Open(name string, sealed []byte) ([]byte, error) {
	box, err := boxOf(k.key)
	if err != nil {
		return nil, err
	}
	text, err := box.Open(nil, nil, sealed, k.bind(name))
	if err != nil {
		return nil, fmt.Errorf("open %s: it was changed, or belongs to another workspace", name)
	}
	return text, nil
}

func (k DataKey) bind(name string) []byte { return fmt.Appendf(k.binding.bind(), "|%q", name) }

func encrypt(key, text []byte, binding Binding) ([]byte, error) {
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}
	return box.Seal(nil, nil, text, binding.bind()), nil //nolint:gosec // the AEAD generates its own random nonce
}

func decrypt(key, text []byte, binding Binding) ([]byte, error) {
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}
	out, err := box.Open(nil, nil, text, binding.bind())
	if err != nil {
		return nil, fmt.Errorf("open the sealed secret of %q, version %d: the row was changed, or moved here from elsewhere: "+
			"set it again with autopost credential set or link", binding.AuthRef, binding.Version)
	}
	return out, nil
}

func boxOf(key []byte) (cipher.AEAD, error) {
	if len(key) != keyBytes {
		return nil, errors.New("the sealed secret has no data key")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
