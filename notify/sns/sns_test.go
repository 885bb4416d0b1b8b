package sns_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/notify/sns"
	"drydock.dev/drydock/rules/notices"
)

var kinds = notify.Kinds{sns.Kind}

func published(w http.ResponseWriter, _ notifytest.Received) {
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprint(w, `<PublishResponse><PublishResult><MessageId>1</MessageId></PublishResult><ResponseMetadata><RequestId>2</RequestId></ResponseMetadata></PublishResponse>`)
}

func withKeys(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(`"accessKeyID": %s, "secretAccessKey": %s`, notifytest.File(notifytest.SecretFile(t, "AKIACANARY")), notifytest.File(notifytest.SecretFile(t, "canary/of+a=key")))
}

func form(t *testing.T, r notifytest.Received) url.Values {
	t.Helper()
	values, err := url.ParseQuery(string(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// attributesOf are the message attributes of a request by name, each with its type.
func attributesOf(values url.Values) map[string]string {
	out := map[string]string{}
	for i := 1; values.Has(fmt.Sprintf("MessageAttributes.entry.%d.Name", i)); i++ {
		entry := fmt.Sprintf("MessageAttributes.entry.%d.", i)
		out[values.Get(entry+"Name")] = values.Get(entry+"Value.DataType") + " " + values.Get(entry+"Value.StringValue")
	}
	return out
}

func TestSNS(t *testing.T) {
	notifytest.AWS(t)
	r := notifytest.Receive(t, published)
	s := notifytest.Senders(t, kinds, `{"sns": {"topicARN": %q, "endpoint": %q, %s}}`, notifytest.Topic, r.URL, withKeys(t))
	e := notifytest.Event(notices.MaintenanceIncomplete)
	e.Cluster = strings.Repeat("ü", 120)
	notifytest.Deliver(t, s, notifytest.Message(e))
	got := r.Last(t, 1)
	values := form(t, got)
	if values.Get("Action") != "Publish" || values.Get("TopicArn") != notifytest.Topic || values.Has("MessageGroupId") {
		t.Errorf("%v", values)
	}
	if subject := []rune(values.Get("Subject")); len(subject) != 99 {
		t.Errorf("the subject has %d characters", len(subject))
	}
	notifytest.Contains(t, values.Get("Message"), "Node: worker-1", "Reason: new firmware")
	notifytest.Contains(t, got.Header.Get("Authorization"), "Credential=AKIACANARY/", "/eu-central-1/sns/")
	attributes := attributesOf(values)
	if attributes["state"] != "String MaintenanceIncomplete" || attributes["node"] != "String worker-1" || attributes["requestor"] != "String ops.example.com" {
		t.Errorf("%v", attributes)
	}
}

func TestSNSInOrder(t *testing.T) {
	notifytest.AWS(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHECHAIN")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	r := notifytest.Receive(t, published)
	s := notifytest.Senders(t, kinds, `{"sns": {"topicARN": %q, "endpoint": %q, "region": "us-east-1"}}`, notifytest.Topic+".fifo", r.URL)
	other := notifytest.Event(notices.MaintenanceComplete)
	other.Node, other.Requestor = "worker-2", ""
	for i, m := range []notify.Message{notifytest.Message(notifytest.Event(notices.MaintenanceStarted)), notifytest.Message(other, notifytest.Event(notices.MaintenanceStarted))} {
		notifytest.Deliver(t, s, m)
		got := r.Last(t, i+1)
		values := form(t, got)
		if want := []string{"worker-1", "oncall"}[i]; values.Get("MessageGroupId") != want || len(values.Get("MessageDeduplicationId")) != 64 {
			t.Errorf("%v", values)
		}
		notifytest.Contains(t, got.Header.Get("Authorization"), "Credential=AKIAOFTHECHAIN/", "/us-east-1/sns/")
	}
	all := r.All()
	if attributes := attributesOf(form(t, all[1])); attributes["node"] != `String.Array ["worker-2","worker-1"]` || attributes["requestor"] != "String ops.example.com" {
		t.Errorf("%v", attributes)
	}
	if form(t, all[0]).Get("MessageDeduplicationId") != form(t, all[1]).Get("MessageDeduplicationId") {
		t.Error("the same key is another ID")
	}
}

func TestSNSErrors(t *testing.T) {
	notifytest.AWS(t)
	for code, c := range map[string]struct {
		status    int
		permanent bool
	}{
		"InvalidParameter":     {400, true},
		"NotFound":             {404, true},
		"Throttling":           {400, false},
		"InternalError":        {500, false},
		"InvalidClientTokenId": {403, false},
	} {
		r := notifytest.Receive(t, func(w http.ResponseWriter, _ notifytest.Received) {
			w.WriteHeader(c.status)
			fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>AKIACANARY is wrong</Message></Error><RequestId>1</RequestId></ErrorResponse>`, code)
		})
		s := notifytest.Senders(t, kinds, `{"sns": {"topicARN": %q, "endpoint": %q, %s}}`, notifytest.Topic, r.URL, withKeys(t))
		_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
		if err == nil || notify.Permanent(err) != c.permanent || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v, permanent %v", code, err, notify.Permanent(err))
		}
		if n := len(r.All()); n != 1 {
			t.Errorf("%s: tried %d times", code, n)
		}
	}
	s := notifytest.Senders(t, kinds, `{"sns": {"topicARN": %q, "endpoint": "http://127.0.0.1:1"}}`, notifytest.Topic)
	if _, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted))); err == nil || notify.Permanent(err) {
		t.Errorf("without credentials: %v", err)
	}
}
