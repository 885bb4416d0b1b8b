package email_test

import (
	"errors"
	"fmt"
	"mime"
	"net/mail"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-smtp"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/email"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/rules/notices"
)

var kinds = notify.Kinds{email.Kind}

func subject(t *testing.T, m *mail.Message) string {
	t.Helper()
	plain, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestEmail(t *testing.T) {
	p := notifytest.StartMailServer(t, email.StartTLSRequired, "canary-of-a-password")
	path := notifytest.SecretFile(t, "canary-of-a-password")
	s := notifytest.Senders(t, kinds, `{"email": {"host": %q, "port": %s, "username": "drydock", "password": %s, "from": "Drydock <drydock@example.com>",
		"to": ["ops@example.com", "Team A <a@example.com>"], "caFile": %q}, "thread": "maintenance"}`, p.Host, p.Port, notifytest.File(path), p.CA)

	first := notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.SLAExpired)))
	got, parsed, body := p.Mail(t, 1)
	if got.From != "drydock@example.com" || strings.Join(got.To, " ") != "ops@example.com a@example.com" {
		t.Errorf("from %s to %v", got.From, got.To)
	}
	if text := subject(t, parsed); text != "[eu] worker-1: not empty in the agreed time, what is left may be removed by force" {
		t.Errorf("the subject is %q", text)
	}
	notifytest.Contains(t, body, "Node: worker-1, owned by team-a\nFor: ops.example.com, planned\nReason: new firmware\nTicket: CHG-1\nWaiting for:\n- pod web/web-0",
		"- and 2 more\nSince: 2026-03-10 10:00:00 UTC\nWorkflow: node-maintenance/worker-1/ops\n")
	id := parsed.Header.Get("Message-ID")
	if !regexp.MustCompile(`^<[0-9a-f]{32}@example\.com>$`).MatchString(id) || id != "<"+first.Thread+">" || parsed.Header.Get("In-Reply-To") != "" {
		t.Errorf("the ID is %s, the thread %s", id, first.Thread)
	}

	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.SLAExpired)))
	if _, again, _ := p.Mail(t, 2); again.Header.Get("Message-ID") != id {
		t.Error("a repetition has another ID")
	}

	m := notifytest.Message(notifytest.Event(notices.MaintenanceComplete))
	m.Key, m.Thread = "another", first.Thread
	if receipt := notifytest.Deliver(t, s, m); receipt.Thread != first.Thread {
		t.Errorf("the answer's thread is %q", receipt.Thread)
	}
	_, answer, _ := p.Mail(t, 3)
	if answer.Header.Get("In-Reply-To") != id || answer.Header.Get("References") != id || answer.Header.Get("Message-ID") == id {
		t.Errorf("%v", answer.Header)
	}
	if p.Plaintext {
		t.Error("sent without TLS")
	}
	m.Thread = "x>\r\nBcc: everybody@example.com"
	if _, err := s.Send(t.Context(), "oncall", m); !notify.Permanent(err) {
		t.Errorf("a thread with a header of its own: %v", err)
	}
}

func TestEmailTakesNoHeadersFromPeople(t *testing.T) {
	p := notifytest.StartMailServer(t, email.StartTLSNone, "")
	s := notifytest.Senders(t, kinds, `{"email": {"host": %q, "port": %s, "startTLS": "none", "from": "d@example.com", "to": ["ops@example.com"]},
		"template": {"subject": "{{.Node}} {{.Reason}} {{.Requestor}}", "text": "{{.Reason}}"}}`, p.Host, p.Port)
	e := notifytest.Event(notices.MaintenanceStarted)
	e.Node, e.Requestor = "worker-1\r\nBcc: evil@example.com", "ops\n\nbody"
	e.Reason = "r\r\n.\r\nMAIL FROM:<evil@example.com>\r\nü"
	notifytest.Deliver(t, s, notifytest.Message(e))
	got, parsed, body := p.Mail(t, 1)
	if len(got.To) != 1 || parsed.Header.Get("Bcc") != "" || len(parsed.Header["Subject"]) != 1 {
		t.Errorf("to %v, %v", got.To, parsed.Header)
	}
	if text := subject(t, parsed); text != "worker-1 Bcc: evil@example.com r . MAIL FROM:<evil@example.com> ü ops body" {
		t.Errorf("the subject is %q", text)
	}
	if body != "r . MAIL FROM:<evil@example.com> ü\n" {
		t.Errorf("a reason writes lines of the mail: %q", body)
	}
}

func TestEmailErrors(t *testing.T) {
	p := notifytest.StartMailServer(t, email.StartTLSRequired, "the-new-password")
	path := notifytest.SecretFile(t, "canary-of-the-old-one")
	s := notifytest.Senders(t, kinds, `{"email": {"host": %q, "port": %s, "username": "drydock", "password": %s, "from": "d@example.com", "to": ["ops@example.com"], "caFile": %q}}`,
		p.Host, p.Port, notifytest.File(path), p.CA)
	_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
	if err == nil || notify.Permanent(err) || strings.Contains(err.Error(), "canary") {
		t.Fatalf("an old password: %v, permanent %v", err, notify.Permanent(err))
	}
	notifytest.Contains(t, err.Error(), "(secret)")

	if err := os.WriteFile(path, []byte("the-new-password"), 0o600); err != nil {
		t.Fatal(err)
	}
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
	for _, c := range []struct {
		refuse    error
		permanent bool
	}{
		{&smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "busy"}, false},
		{&smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}, true},
		{errors.New("broken"), false}, // 451
	} {
		p.Mu.Lock()
		p.Refuse = c.refuse
		p.Mu.Unlock()
		_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
		if err == nil || notify.Permanent(err) != c.permanent {
			t.Errorf("%v: %v, permanent %v", c.refuse, err, notify.Permanent(err))
		}
	}
}

// An address that is refused keeps the mail from nobody else, and whoever has got it does not get it again.
func TestARefusedRecipientSilencesNobodyElse(t *testing.T) {
	gone := &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
	busy := &smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "busy"}
	prepare := func(t *testing.T, refuse map[string]error) (*notifytest.MailServer, *notify.Senders) {
		p := notifytest.StartMailServer(t, email.StartTLSNone, "")
		p.RefuseTo = refuse
		return p, notifytest.Senders(t, kinds, `{"email": {"host": %q, "port": %s, "startTLS": "none", "from": "d@example.com", "to": ["Ana Ü <a@example.com>", "b@example.com", "c@example.com"]}}`, p.Host, p.Port)
	}
	whom := func(p *notifytest.MailServer) string {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		var all []string
		for _, m := range p.Mails {
			all = append(all, strings.Join(m.To, "+"))
		}
		return strings.Join(all, " ")
	}
	message := notifytest.Message(notifytest.Event(notices.MaintenanceStarted))
	t.Run("for good", func(t *testing.T) {
		p, s := prepare(t, map[string]error{"b@example.com": gone})
		receipt, err := s.Send(t.Context(), "oncall", message)
		if err != nil || len(receipt.Refused) != 1 || !strings.Contains(receipt.Refused[0], "b@example.com") || receipt.Thread == "" {
			t.Errorf("%+v, %v", receipt, err)
		}
		if got := whom(p); got != "a@example.com c@example.com" {
			t.Errorf("mails to %s", got)
		}
		_, parsed, _ := p.Mail(t, 2)
		to, err := mail.ParseAddressList(parsed.Header.Get("To"))
		if err != nil || len(to) != 3 || to[0].Name != "Ana Ü" || parsed.Header.Get("Bcc") != "" {
			t.Errorf("it says that it is to %v (%v)", parsed.Header, err)
		}
	})
	t.Run("for now", func(t *testing.T) {
		p, s := prepare(t, map[string]error{"b@example.com": busy})
		if _, err := s.Send(t.Context(), "oncall", message); err == nil || notify.Permanent(err) {
			t.Errorf("%v", err)
		}
		p.Mu.Lock()
		p.RefuseTo = nil
		p.Mu.Unlock()
		if receipt, err := s.Send(t.Context(), "oncall", message); err != nil || len(receipt.Refused) > 0 {
			t.Errorf("%+v, %v", receipt, err)
		}
		if got := whom(p); got != "a@example.com c@example.com b@example.com" {
			t.Errorf("mails to %s", got)
		}
	})
	t.Run("all of them", func(t *testing.T) {
		p, s := prepare(t, map[string]error{"a@example.com": gone, "b@example.com": gone, "c@example.com": gone})
		if _, err := s.Send(t.Context(), "oncall", message); !notify.Permanent(err) || whom(p) != "" {
			t.Errorf("%v, mails to %s", err, whom(p))
		}
	})
}

func TestEmailIsNotSentWithoutTLS(t *testing.T) {
	p := notifytest.StartMailServer(t, email.StartTLSNone, "")
	s := notifytest.Senders(t, kinds, `{"email": {"host": %q, "port": %s, "from": "d@example.com", "to": ["ops@example.com"]}}`, p.Host, p.Port)
	if _, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted))); err == nil {
		t.Error("sent")
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.Mails) != 0 {
		t.Errorf("%d mails", len(p.Mails))
	}
}

func TestEmailWithImplicitTLS(t *testing.T) {
	p := notifytest.StartMailServer(t, email.ImplicitTLS, "canary")
	s := notifytest.Senders(t, kinds, `{"email": {"host": %q, "port": %s, "startTLS": "implicit", "username": "drydock", "password": %s,
		"from": "d@example.com", "to": ["ops@example.com"], "caFile": %q}}`, p.Host, p.Port, notifytest.File(notifytest.SecretFile(t, "canary")), p.CA)
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
	if _, parsed, _ := p.Mail(t, 1); subject(t, parsed) != "[eu] worker-1: cordoned, the drain has begun" || p.Plaintext {
		t.Errorf("%v, in the clear %v", parsed.Header, p.Plaintext)
	}
}

func TestEmailOfADigest(t *testing.T) {
	p := notifytest.StartMailServer(t, email.StartTLSNone, "")
	s := notifytest.Senders(t, kinds, `{"email": {"host": %q, "port": %s, "startTLS": "none", "from": "d@example.com", "to": ["ops@example.com"]}, "digest": "5m"}`, p.Host, p.Port)
	other := notifytest.Event(notices.MaintenanceComplete)
	other.Node, other.Requestor, other.Reason, other.At = "worker-2", "", "", other.At.Add(90*time.Minute)
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted), other))
	_, parsed, body := p.Mail(t, 1)
	if text := subject(t, parsed); text != "[eu] 2 events of maintenances on worker-1, worker-2" {
		t.Errorf("the subject is %q", text)
	}
	if body != "Mar 10 10:00  worker-1: cordoned, the drain has begun (for ops.example.com: new firmware)\n"+
		"Mar 10 11:30  worker-2: maintenance is complete, the node is back in service\n" {
		t.Errorf("the text is:\n%s", body)
	}

	var many []notices.Event
	for i := range 2000 {
		e := notifytest.Event(notices.MaintenanceStarted)
		e.Node = fmt.Sprintf("worker-%d-ü", i)
		many = append(many, e)
	}
	notifytest.Deliver(t, s, notifytest.Message(many...))
	_, parsed, body = p.Mail(t, 2)
	if text := subject(t, parsed); len(text) > 250 || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
		t.Errorf("the subject is %q", text)
	}
	if len(body) > 33<<10 || !utf8.ValidString(body) || !strings.HasSuffix(body, "…\n") {
		t.Errorf("the text has %d bytes and ends with %q", len(body), body[len(body)-100:])
	}
}
