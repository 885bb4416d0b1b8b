// Package payloadcodec encrypts what workflows are given, say and return, so that Temporal's server never sees it in plain text.
//
// It is AES-256 in GCM with a random nonce for each payload, by keys of a file. The key's name goes with the payload and is
// authenticated with it. What is not encrypted is taken as it is, so that messages of other tools, and histories from before,
// are read.
package payloadcodec

import (
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// VariableKeysFile names the file of keys. Without it nothing is encrypted.
const VariableKeysFile = "DRYDOCK_CODEC_KEYS_FILE"

// Metadata of an encrypted payload, as Temporal's own examples name them.
const (
	encodingEncrypted = "binary/encrypted"
	metadataKeyID     = "encryption-key-id"
)

// Codec encrypts and decrypts payloads.
type Codec struct{ keys *keys }

var _ converter.PayloadCodec = &Codec{}

// Open reads a file of keys, which is read anew when it changes. What is wrong with it then is reported, and the keys that there
// were count; report may be nil.
func Open(path string, report func(error)) (*Codec, error) {
	k, err := openKeys(path, report)
	if err != nil {
		return nil, err
	}
	return &Codec{keys: k}, nil
}

// Apply has a client encrypt all payloads that it sends, with the messages and stack traces of failures, and decrypt all that it
// is sent: it does so on the connection, so that histories, heartbeats and schedules that are read without a data converter are
// decrypted as well. Search attributes stay as they are: the server has to read them.
func Apply(options *client.Options, c *Codec) error {
	failures, err := converter.NewFailureGRPCClientInterceptor(converter.NewFailureGRPCClientInterceptorOptions{EncodeCommonAttributes: true})
	if err != nil {
		return fmt.Errorf("the payload codec: %w", err)
	}
	payloads, err := converter.NewPayloadCodecGRPCClientInterceptor(converter.PayloadCodecGRPCClientInterceptorOptions{Codecs: []converter.PayloadCodec{c}})
	if err != nil {
		return fmt.Errorf("the payload codec: %w", err)
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(failures, payloads))
	return nil
}

// IsEncrypted reports whether an error comes from reading an encrypted payload without a codec.
func IsEncrypted(err error) bool {
	return errors.Is(err, converter.ErrEncodingIsNotSupported) && strings.Contains(err.Error(), encodingEncrypted)
}

// Encode encrypts payloads with the newest key.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	key := c.keys.newest()
	all := make([]*commonpb.Payload, len(payloads))
	for i, plain := range payloads {
		if string(plain.GetMetadata()[converter.MetadataEncoding]) == encodingEncrypted {
			all[i] = plain
			continue
		}
		data, err := proto.Marshal(plain)
		if err != nil {
			return nil, fmt.Errorf("encrypting a payload: %w", err)
		}
		all[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encodingEncrypted), metadataKeyID: []byte(key.id)},
			Data:     key.aead.Seal(nil, nil, data, []byte(key.id)),
		}
	}
	return all, nil
}

// Decode decrypts payloads with the keys that they were encrypted with, and leaves those that were not.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	all := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != encodingEncrypted {
			all[i] = p
			continue
		}
		id := p.GetMetadata()[metadataKeyID]
		aead, err := c.keys.named(string(id))
		if err != nil {
			return nil, err
		}
		data, err := aead.Open(nil, nil, p.GetData(), id)
		if err != nil {
			return nil, fmt.Errorf("the payload cannot be decrypted with key %q: it was changed, or another key has that name now", id)
		}
		all[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(data, all[i]); err != nil {
			return nil, fmt.Errorf("reading a decrypted payload: %w", err)
		}
	}
	return all, nil
}
