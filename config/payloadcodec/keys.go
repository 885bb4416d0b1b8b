package payloadcodec

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"drydock.dev/drydock/config/renewed"
)

// keySize is that of AES-256, in bytes.
const keySize = 32

// maxKeyID bounds the name of a key: it goes with every payload.
const maxKeyID = 64

// lookEvery is how often a file of keys is looked at.
const lookEvery = 5 * time.Second

// key is one key under its name.
type key struct {
	id   string
	aead cipher.AEAD
}

// keys are those of a file, the first of which encrypts. The file is read anew when it has changed.
type keys struct {
	path string
	now  func() time.Time
	all  *renewed.Value[[]key]

	mu     sync.Mutex
	looked time.Time
}

func openKeys(path string, report func(error)) (*keys, error) {
	k := &keys{path: path, now: time.Now, looked: time.Now()}
	var err error
	k.all, err = renewed.Open(reader(path), report)
	return k, err
}

// reader reads the file's keys where it is not as it was.
func reader(path string) func() ([]key, error) {
	var all []key
	was := ""
	return func() ([]key, error) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("keys of the payload codec: %w", err)
		}
		state := fmt.Sprint(info.ModTime(), info.Size())
		if state == was {
			return all, nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("keys of the payload codec: %w", err)
		}
		now, err := parse(string(content))
		if err != nil {
			return nil, fmt.Errorf("keys of the payload codec, %s: %w", path, err)
		}
		all, was = now, state
		return all, nil
	}
}

// parse reads one key a line: its name, and 32 bytes in Base64. Its errors never have a key in them.
func parse(text string) (all []key, err error) {
	known := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: want the name of a key and the key in Base64", i+1)
		}
		id := fields[0]
		raw, err := base64.StdEncoding.DecodeString(fields[1])
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: the key is not Base64", i+1)
		case len(raw) != keySize:
			return nil, fmt.Errorf("line %d: the key has %d bytes; want %d (openssl rand -base64 %d)", i+1, len(raw), keySize, keySize)
		case len(id) > maxKeyID:
			return nil, fmt.Errorf("line %d: the name has %d bytes; want at most %d", i+1, len(id), maxKeyID)
		case known[id]:
			return nil, fmt.Errorf("line %d: another key has the name %s", i+1, id)
		}
		known[id] = true
		block, err := aes.NewCipher(raw)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		all = append(all, key{id: id, aead: aead})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it has no key: want lines of a name and a key in Base64 (openssl rand -base64 %d)", keySize)
	}
	return all, nil
}

// newest is the key that encrypts.
func (k *keys) newest() key {
	if k.isTime() {
		return k.all.Get()[0]
	}
	return k.all.Last()[0]
}

// isTime reports whether the file is to be looked at again.
func (k *keys) isTime() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now().Sub(k.looked) < lookEvery {
		return false
	}
	k.looked = k.now()
	return true
}

// named finds a key that something was encrypted with. One that is not known may have been added just now.
func (k *keys) named(id string) (cipher.AEAD, error) {
	for _, look := range []func() []key{k.all.Last, k.all.Get} {
		for _, one := range look() {
			if one.id == id {
				return one.aead, nil
			}
		}
	}
	if err := k.all.Problem(); err != nil {
		return nil, fmt.Errorf("the payload is encrypted with key %q, which is not known: %w", id, err)
	}
	return nil, fmt.Errorf("the payload is encrypted with key %q, which %s does not have", id, k.path)
}
