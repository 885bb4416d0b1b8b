package views

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
)

func TestWhoWasVerifiedIsShownBesideWhoSaysSo(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for want, a := range map[string]api.ApprovalStatus{
		" by amy: fine": {At: at, By: "amy", Comment: "fine"},
		" by amy (verified: jwt:amy@example.com)":             {At: at, By: "amy", Principal: "jwt:amy@example.com"},
		" (verified: jwt:amy@example.com): without saying so": {At: at, Principal: "jwt:amy@example.com", Comment: "without saying so"},
	} {
		if got := byAt(&a, At(at)); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q at its end", got, want)
		}
	}
}
