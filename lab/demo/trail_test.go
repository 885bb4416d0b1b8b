package main

import (
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
)

func TestTheTrailIsInWords(t *testing.T) {
	many := "{"
	for _, letter := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		many += `"` + letter + `":"a text of some length",`
	}
	many = strings.TrimSuffix(many, ",") + "}"
	for data, want := range map[string]string{
		`{"reason":"kernel 6.12","drain":{"force":true,"mode":"evict"},"priority":0,"hooks":[],"windows":["nights"]}`: "drain.force true, drain.mode evict, reason kernel 6.12, windows: 1",
		`"done"`: "done",
		`null`:   "",
		many:     "a a text of some length, b a text of some length, c a text of some length, d a text of some length, e a text of some length, f a text of some length, and 20 more",
	} {
		if got := payloads([]*common.Payload{{Data: []byte(data)}}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := payloads(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
