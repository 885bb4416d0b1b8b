package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"drydock/rules/notices"
)

// maxSubjectSNS and maxID are what SNS accepts, in characters.
const (
	maxSubjectSNS = 99
	maxID         = 128
)

type snsSender struct {
	config SNS
	agent  string

	mu sync.Mutex
	// loaded keeps the credentials that the SDK has found, which it renews itself.
	loaded *aws.Config
}

// region is the topic's own unless another one is configured.
func (s SNS) region() string {
	if s.Region != "" {
		return s.Region
	}
	topic, err := arn.Parse(s.TopicARN)
	if err != nil {
		return "" // Validate refuses such a topic
	}
	return topic.Region
}

func (s *snsSender) send(ctx context.Context, d *delivery) (Receipt, error) {
	subject, text, err := d.words(nil)
	if err != nil {
		return Receipt{}, err
	}
	client, err := s.client(ctx, d)
	if err != nil {
		return Receipt{}, err
	}
	input := &sns.PublishInput{TopicArn: &s.config.TopicARN, Message: &text, MessageAttributes: attributes(d.Events)}
	if subject != "" {
		input.Subject = aws.String(cutRunes(subject, maxSubjectSNS))
	}
	if strings.HasSuffix(s.config.TopicARN, ".fifo") {
		input.MessageGroupId, input.MessageDeduplicationId = aws.String(group(d)), aws.String(hashed(d.Key))
	}
	if _, err := client.Publish(ctx, input); err != nil {
		return Receipt{}, snsError(err)
	}
	return Receipt{}, nil
}

func (s *snsSender) client(ctx context.Context, d *delivery) (*sns.Client, error) {
	cfg, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	provider := cfg.Credentials
	if !s.config.AccessKeyID.IsZero() {
		id, err := d.secrets.read("sns.accessKeyID", s.config.AccessKeyID)
		if err != nil {
			return nil, err
		}
		key, err := d.secrets.read("sns.secretAccessKey", s.config.SecretAccessKey)
		if err != nil {
			return nil, err
		}
		provider = credentials.NewStaticCredentialsProvider(id, key, "")
	} else if found, err := provider.Retrieve(ctx); err == nil {
		d.secrets.Add(found.AccessKeyID, found.SecretAccessKey, found.SessionToken)
	} else {
		return nil, fmt.Errorf("looking for AWS credentials: %w", err)
	}
	return sns.NewFromConfig(cfg, func(o *sns.Options) {
		o.Credentials = provider
		o.Retryer = aws.NopRetryer{} // Temporal retries
		if s.config.Endpoint != "" {
			o.BaseEndpoint = &s.config.Endpoint
		}
		if client, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = newClient(client.GetTransport())
		}
	}), nil
}

// load reads AWS's own configuration once; after an error it is tried again.
func (s *snsSender) load(ctx context.Context) (aws.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded != nil {
		return *s.loaded, nil
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx,
		awsconfig.WithRegion(s.config.region()), awsconfig.WithAppID(s.agent),
		awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(requestTimeout)))
	if err != nil {
		return cfg, fmt.Errorf("reading AWS's configuration: %w", err)
	}
	s.loaded = &cfg
	return cfg, nil
}

// attributes are what subscriptions can filter by: a string, or all strings of a digest.
func attributes(events []notices.Event) map[string]types.MessageAttributeValue {
	out := map[string]types.MessageAttributeValue{}
	for name, of := range map[string]func(notices.Event) string{
		"state":     func(e notices.Event) string { return string(e.State) },
		"node":      func(e notices.Event) string { return e.Node },
		"requestor": func(e notices.Event) string { return e.Requestor },
	} {
		var values []string
		for _, e := range events {
			if value := of(e); value != "" && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		switch len(values) {
		case 0: // SNS refuses an empty attribute
		case 1:
			out[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &values[0]}
		default:
			list, _ := json.Marshal(values) // strings always marshal
			out[name] = types.MessageAttributeValue{DataType: aws.String("String.Array"), StringValue: aws.String(string(list))}
		}
	}
	return out
}

// group orders the messages of one node; digests are ordered among themselves.
func group(d *delivery) string {
	name := d.Events[0].Node
	if slices.ContainsFunc(d.Events, func(e notices.Event) bool { return e.Node != name }) {
		name = d.channel
	}
	if len(name) > maxID {
		return hashed(name)
	}
	return name
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func cutRunes(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// snsError makes permanent what AWS refuses. Throttling is refused with status 400 too, and tried again.
func snsError(err error) error {
	var response *awshttp.ResponseError
	out := fmt.Errorf("publishing to SNS: %w", err)
	if !errors.As(err, &response) || retry.NewStandard().IsErrorRetryable(err) {
		return out
	}
	return byStatus(response.HTTPStatusCode(), out)
}
