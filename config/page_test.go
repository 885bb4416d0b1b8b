package config

import (
	"errors"
	"strings"
	"testing"
)

func TestPagesAreValidated(t *testing.T) {
	for _, right := range []Page{
		{}, {Listen: "127.0.0.1:8088"}, {Listen: "[::1]:8088", Names: []string{"drydock.example.com"}, TemporalUI: "https://temporal.example.com"},
		{Listen: ":8088", Authentication: AuthenticationToken}, {Listen: ":8088", Authentication: AuthenticationProxy, Header: "X-Forwarded-User"},
	} {
		if err := errors.Join(right.validate()...); err != nil {
			t.Errorf("%+v: %v", right, err)
		}
	}
	for want, wrong := range map[string]Page{
		"page.listen: is missing":              {TemporalUI: "https://temporal.example.com"},
		"page.listen: \"nowhere\"":             {Listen: "nowhere"},
		"can be reached from other machines":   {Listen: "0.0.0.0:8088"},
		"page.authentication: \"ldap\"":        {Listen: ":8088", Authentication: "ldap"},
		"page.header: is missing":              {Listen: ":8088", Authentication: AuthenticationProxy},
		"page.header: is for":                  {Listen: "127.0.0.1:1", Header: "X-Forwarded-User"},
		"page.header: \"Accept\"":              {Listen: ":8088", Authentication: AuthenticationProxy, Header: "Accept"},
		"page.names[0]: \"*.example.com\"":     {Listen: "127.0.0.1:1", Names: []string{"*.example.com"}},
		"page.temporalUI: \"https://a/?b\"":    {Listen: "127.0.0.1:1", TemporalUI: "https://a/?b"},
		"page.header: \"X User\"":              {Listen: ":8088", Authentication: AuthenticationProxy, Header: "X User"},
		"page.header: \"Host\"":                {Listen: ":8088", Authentication: AuthenticationProxy, Header: "Host"},
		"page.names: 11 names":                 {Listen: "127.0.0.1:1", Names: strings.Split("a,b,c,d,e,f,g,h,i,j,k", ",")},
		"page.names[0]: \"a/b\"":               {Listen: "127.0.0.1:1", Names: []string{"a/b"}},
		"page.names[0]: \"a:80\"":              {Listen: "127.0.0.1:1", Names: []string{"a:80"}},
		"page.temporalUI: \"javascript:it()\"": {Listen: "127.0.0.1:1", TemporalUI: "javascript:it()"},
	} {
		if err := errors.Join(wrong.validate()...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", wrong, err, want)
		}
	}
}
