package site

import (
	"io"
	"net/http"
	"strings"
)

// HTTP sends a request, and returns the status and body of the answer.
func (s *Site) HTTP(method, url, body string) (code int, answer string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Ctx, method, url, strings.NewReader(body))
	s.NoError(err)
	response, err := http.DefaultClient.Do(request)
	s.NoError(err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	s.NoError(err)
	return response.StatusCode, string(data)
}
