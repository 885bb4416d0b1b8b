package roles

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"go.temporal.io/server/common/authorization"
)

// defaultClaim is the claim of a JWT in which Temporal's own mapper reads permissions too.
const defaultClaim = "permissions"

// jwtMapper adds roles to the claims of a mapper that has verified the token.
type jwtMapper struct {
	verifier authorization.ClaimMapper
	claim    string
}

// FromJWT returns a claim mapper that reads permissions "NAMESPACE:ROLE" of this package's roles from a claim of the caller's JWT, by
// default "permissions", beside what verifier reads there. The verifier, such as Temporal's default JWT mapper, must refuse tokens that
// are not signed as they should be.
func FromJWT(verifier authorization.ClaimMapper, claim string) authorization.ClaimMapper {
	return jwtMapper{verifier, cmp.Or(claim, defaultClaim)}
}

// GetClaims implements authorization.ClaimMapper.
func (m jwtMapper) GetClaims(caller *authorization.AuthInfo) (*authorization.Claims, error) {
	claims, err := m.verifier.GetClaims(caller)
	if err != nil || claims == nil || caller.AuthToken == "" {
		return claims, err
	}
	parts := strings.Split(caller.AuthToken, ".")
	if len(parts) != 3 {
		return nil, fmt.Errorf("the token has %d parts: a JWT has 3", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return nil, fmt.Errorf("decoding the token: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, fmt.Errorf("decoding the token: %w", err)
	}
	var permissions []any
	if text, ok := fields[m.claim]; ok {
		if err := json.Unmarshal(text, &permissions); err != nil {
			return nil, fmt.Errorf("claim %s of the token: %w", m.claim, err)
		}
	}
	granted := Granted{}
	for _, permission := range permissions {
		text, _ := permission.(string)
		namespace, name, _ := strings.Cut(text, ":")
		if role, ok := named[name]; ok && namespace != "" { // others are Temporal's own
			granted[namespace] |= role
		}
	}
	if len(granted) > 0 {
		claims.Extensions = granted
	}
	return claims, nil
}
