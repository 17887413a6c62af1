package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"

	"autopost"
)

// Place is where a sealed secret belongs; it opens nowhere else.
type Place struct {
	Workspace, AuthRef string
	Version            int
}

// bind is what the seals are made over. Quoted, so that no two places look alike.
func (p Place) bind() []byte { return fmt.Appendf(nil, "%q|%q|%d", p.Workspace, p.AuthRef, p.Version) }

// Sealed is a secret as the database keeps it.
type Sealed struct {
	// KeyID names the master key that wraps WrappedKey, the data key of Text.
	KeyID      string
	WrappedKey []byte
	Text       []byte
}

// Seal encrypts a secret for its place, by the first key of the file.
func (r *Keyring) Seal(at Place, secret autopost.Secret) (Sealed, error) {
	keys, err := r.keys()
	if err != nil {
		return Sealed{}, err
	}
	data := newKey().key
	wrapped, err := encrypt(keys[0].key, data, at)
	if err != nil {
		return Sealed{}, err
	}
	text, err := encrypt(data, []byte(secret.Reveal()), at)
	return Sealed{KeyID: keys[0].id, WrappedKey: wrapped, Text: text}, err
}

// Open decrypts a secret at its place. It fails when the master key is not in the
// file, and when a row was changed or moved.
func (r *Keyring) Open(at Place, sealed Sealed) (autopost.Secret, error) {
	data, err := r.unwrap(at, sealed)
	if err != nil {
		return autopost.Secret{}, err
	}
	text, err := decrypt(data, sealed.Text, at)
	if err != nil {
		return autopost.Secret{}, err
	}
	return autopost.NewSecret(string(text)), nil
}

// Rewrap wraps the data key by the first key of the file; the secret itself is not opened.
func (r *Keyring) Rewrap(at Place, sealed Sealed) (Sealed, error) {
	data, err := r.unwrap(at, sealed)
	if err != nil {
		return Sealed{}, err
	}
	keys, err := r.keys()
	if err != nil {
		return Sealed{}, err
	}
	sealed.KeyID = keys[0].id
	sealed.WrappedKey, err = encrypt(keys[0].key, data, at)
	return sealed, err
}

func (r *Keyring) unwrap(at Place, sealed Sealed) ([]byte, error) {
	master, err := r.find(sealed.KeyID)
	if err != nil {
		return nil, err
	}
	return decrypt(master.key, sealed.WrappedKey, at)
}

func encrypt(key, text []byte, at Place) ([]byte, error) {
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}
	return box.Seal(nil, nil, text, at.bind()), nil //nolint:gosec // this box makes a random nonce itself and takes none
}

func decrypt(key, text []byte, at Place) ([]byte, error) {
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}
	out, err := box.Open(nil, nil, text, at.bind())
	if err != nil {
		return nil, fmt.Errorf("open the sealed secret of %q, version %d: the row was changed, or moved here from elsewhere: "+
			"give the credential anew by autopost credential set or link", at.AuthRef, at.Version)
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
