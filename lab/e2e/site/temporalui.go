package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// tried sends a request as the Temporal UI does in a browser. Payloads are plain JSON.
func (s *Site) tried(id, what string, body any) (string, error) {
	s.Helper()
	content, err := json.Marshal(body)
	s.NoError(err)
	target := Shared.Temporal.UI + "/api/v1/namespaces/default/workflows/" + url.PathEscape(id) + what
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodPost, target, bytes.NewReader(content))
	s.NoError(err)
	cookie := s.csrf()
	request.AddCookie(cookie)
	request.Header.Set("X-Csrf-Token", cookie.Value)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return string(answer), err
}

// csrf is the cookie that the UI's server gives a browser, and wants to see again in a header.
func (s *Site) csrf() *http.Cookie {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, Shared.Temporal.UI+"/api/v1/settings", nil)
	s.NoError(err)
	response, err := http.DefaultClient.Do(request)
	s.NoError(err)
	defer response.Body.Close()
	for _, cookie := range response.Cookies() {
		if cookie.Name == "_csrf" {
			return cookie
		}
	}
	s.Fatalf("the UI gives no cookie: %s", response.Status)
	return nil
}

// Post sends what the Temporal UI's pages send, and returns the answer.
func (s *Site) Post(id, what string, body any) string {
	s.Helper()
	answer, err := s.tried(id, what, body)
	if err != nil {
		s.Fatalf("%s%s: %v", id, what, err)
	}
	return answer
}

// Inputs are the arguments of a workflow, a signal, a query or an update.
type Inputs map[string]any

// Encoded are payloads as Temporal's API has them in JSON.
type Encoded struct {
	Payloads []payload `json:"payloads"`
}

type payload struct {
	Metadata map[string][]byte `json:"metadata"`
	Data     []byte            `json:"data"`
}

// Payloads are a value in JSON as an input.
func Payloads(value string) Encoded {
	return Encoded{[]payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(value)}}}
}

// Queried is a query's answer in JSON.
func (s *Site) Queried(id, query string) (string, error) {
	s.Helper()
	text, err := s.tried(id, "/query/"+query, Inputs{})
	if err != nil {
		return "", err
	}
	var answer struct {
		QueryResult Encoded `json:"queryResult"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.QueryResult.Payloads) != 1 {
		return "", errors.New(text)
	}
	return string(answer.QueryResult.Payloads[0].Data), nil
}

// UpdateOf is what the page of an update sends.
func UpdateOf(id, argument string) Inputs {
	return Inputs{
		"waitPolicy": Inputs{"lifecycleStage": "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED"},
		"request": Inputs{
			"meta":  Inputs{"updateId": id, "identity": "ann"},
			"input": Inputs{"args": Payloads(argument)},
		},
	}
}
