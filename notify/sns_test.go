package notify_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"drydock/notify"
	"drydock/rules/notices"
)

const topic = "arn:aws:sns:eu-central-1:123456789012:maintenance"

// aws keeps the machine's own AWS configuration out of a test.
func aws(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, t.TempDir()+"/none")
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CA_BUNDLE", "AWS_ENDPOINT_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

func published(w http.ResponseWriter, _ received) {
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprint(w, `<PublishResponse><PublishResult><MessageId>1</MessageId></PublishResult><ResponseMetadata><RequestId>2</RequestId></ResponseMetadata></PublishResponse>`)
}

func withKeys(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(`"accessKeyID": %s, "secretAccessKey": %s`, file(secretFile(t, "AKIACANARY")), file(secretFile(t, "canary/of+a=key")))
}

func form(t *testing.T, r received) url.Values {
	t.Helper()
	values, err := url.ParseQuery(string(r.body))
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
	aws(t)
	r := receive(t, published)
	s := senders(t, `{"sns": {"topicARN": %q, "endpoint": %q, %s}}`, topic, r.URL, withKeys(t))
	e := event(notices.MaintenanceIncomplete)
	e.Cluster = strings.Repeat("ü", 120)
	deliver(t, s, message(e))
	got := r.last(t, 1)
	values := form(t, got)
	if values.Get("Action") != "Publish" || values.Get("TopicArn") != topic || values.Has("MessageGroupId") {
		t.Errorf("%v", values)
	}
	if subject := []rune(values.Get("Subject")); len(subject) != 99 {
		t.Errorf("the subject has %d characters", len(subject))
	}
	contains(t, values.Get("Message"), "Node: worker-1", "Reason: new firmware")
	contains(t, got.header.Get("Authorization"), "Credential=AKIACANARY/", "/eu-central-1/sns/")
	attributes := attributesOf(values)
	if attributes["state"] != "String MaintenanceIncomplete" || attributes["node"] != "String worker-1" || attributes["requestor"] != "String ops.example.com" {
		t.Errorf("%v", attributes)
	}
}

func TestSNSInOrder(t *testing.T) {
	aws(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHECHAIN")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "canary")
	r := receive(t, published)
	s := senders(t, `{"sns": {"topicARN": %q, "endpoint": %q, "region": "us-east-1"}}`, topic+".fifo", r.URL)
	other := event(notices.MaintenanceComplete)
	other.Node, other.Requestor = "worker-2", ""
	for i, m := range []notify.Message{message(event(notices.MaintenanceStarted)), message(other, event(notices.MaintenanceStarted))} {
		deliver(t, s, m)
		got := r.last(t, i+1)
		values := form(t, got)
		if want := []string{"worker-1", "oncall"}[i]; values.Get("MessageGroupId") != want || len(values.Get("MessageDeduplicationId")) != 64 {
			t.Errorf("%v", values)
		}
		contains(t, got.header.Get("Authorization"), "Credential=AKIAOFTHECHAIN/", "/us-east-1/sns/")
	}
	all := r.all()
	if attributes := attributesOf(form(t, all[1])); attributes["node"] != `String.Array ["worker-2","worker-1"]` || attributes["requestor"] != "String ops.example.com" {
		t.Errorf("%v", attributes)
	}
	if form(t, all[0]).Get("MessageDeduplicationId") != form(t, all[1]).Get("MessageDeduplicationId") {
		t.Error("the same key is another ID")
	}
}

func TestSNSErrors(t *testing.T) {
	aws(t)
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
		r := receive(t, func(w http.ResponseWriter, _ received) {
			w.WriteHeader(c.status)
			fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>AKIACANARY is wrong</Message></Error><RequestId>1</RequestId></ErrorResponse>`, code)
		})
		s := senders(t, `{"sns": {"topicARN": %q, "endpoint": %q, %s}}`, topic, r.URL, withKeys(t))
		_, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted)))
		if err == nil || notify.Permanent(err) != c.permanent || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v, permanent %v", code, err, notify.Permanent(err))
		}
		if n := len(r.all()); n != 1 {
			t.Errorf("%s: tried %d times", code, n)
		}
	}
	s := senders(t, `{"sns": {"topicARN": %q, "endpoint": "http://127.0.0.1:1"}}`, topic)
	if _, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted))); err == nil || notify.Permanent(err) {
		t.Errorf("without credentials: %v", err)
	}
}
