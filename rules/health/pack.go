package health

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
)

// packAbove is how many nodes are written as they are, for people to read; more are compressed.
const packAbove = 50

// maxUnpacked bounds what is read from a compressed form, in bytes.
const maxUnpacked = 64 << 20

// MarshalJSON writes a list, or its compressed form where there are many: what goes from run to run has to be small.
func (n Nodes) MarshalJSON() ([]byte, error) {
	plain, err := json.Marshal([]Node(n))
	if err != nil || len(n) <= packAbove {
		return plain, err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("packing nodes: %w", err)
	}
	return json.Marshal(packed.Bytes())
}

// UnmarshalJSON reads either form.
func (n *Nodes) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]Node)(n))
	}
	var packed []byte
	if err := json.Unmarshal(data, &packed); err != nil {
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("unpacking nodes: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxUnpacked))
	if err == nil {
		err = json.Unmarshal(plain, (*[]Node)(n))
	}
	if err != nil {
		return fmt.Errorf("unpacking nodes: %w", err)
	}
	return nil
}
