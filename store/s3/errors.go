package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// denied are codes of refused credentials, besides the status 401 and 403. From Amazon's list of error responses,
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.
var denied = map[string]bool{"ExpiredToken": true, "InvalidToken": true, "TokenRefreshRequired": true, "InvalidAccessKeyId": true, "AuthorizationHeaderMalformed": true}

// noCredentials is why there is nothing to sign with.
type noCredentials struct{ error }

func (e noCredentials) Unwrap() error { return e.error }

// identified tells the errors of credentials from those of requests.
type identified struct{ aws.CredentialsProvider }

func (p identified) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if p.CredentialsProvider == nil {
		return aws.Credentials{}, noCredentials{errors.New("there are none")}
	}
	c, err := p.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		err = noCredentials{err}
	}
	return c, err
}

// meaning is what an error of the SDK means. What isn't known here leaves an append unknown: above all 409, 5xx, and
// the lack of a reply.
func (l *Ledger) meaning(err error) storekit.Meaning {
	if e, ok := errors.AsType[noCredentials](err); ok {
		return storekit.Meaning{Is: store.ErrDenied, NotStored: true, Text: "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role: " + e.Error()}
	}
	code, status := codeOf(err), statusOf(err)
	text := describe(err, code, status)
	switch {
	case status == http.StatusPreconditionFailed:
		return storekit.Meaning{Is: store.ErrConflict, Sound: true, Text: text}
	case code == "NoSuchBucket", status == http.StatusNotFound && code == "NotFound":
		return storekit.Meaning{Is: store.ErrMissing, NotStored: true, Text: fmt.Sprintf("there is no bucket %s", l.address.bucket)}
	case status == http.StatusMovedPermanently, code == "AuthorizationHeaderMalformed", code == "IllegalLocationConstraintException":
		where := "another region"
		if reply := replyOf(err); reply != nil && regionName().MatchString(reply.Header.Get("X-Amz-Bucket-Region")) {
			where = "the region " + reply.Header.Get("X-Amz-Bucket-Region")
		}
		return storekit.Meaning{NotStored: true, Text: fmt.Sprintf("the bucket is in %s: give region=… in the URI (%s)", where, text)}
	case status == http.StatusUnauthorized, status == http.StatusForbidden, denied[code]:
		return storekit.Meaning{Is: store.ErrDenied, NotStored: true, Text: text}
	case status == http.StatusTooManyRequests, code == "SlowDown", code == "RequestLimitExceeded",
		status == http.StatusServiceUnavailable && storekit.RetryAfter(replyOf(err)) > 0: // The reply to a HEAD has no code.
		return storekit.Meaning{Is: store.ErrThrottled, RetryAfter: storekit.RetryAfter(replyOf(err)), Sound: true, Text: text}
	case status == http.StatusConflict: // ConditionalRequestConflict: another request for the key is in progress
		return storekit.Meaning{Sound: true, Text: text}
	}
	const trust = "let this machine trust the authority of the endpoint's certificate (by SSL_CERT_FILE on Linux; AWS_CA_BUNDLE names those to trust in place of the system's), and name the endpoint as the certificate does"
	return storekit.Meaning{Text: text, Remedy: storekit.OfCertificate(err, trust)}
}

// describe is the code, the status and the message of a reply; empty if there was none.
func describe(err error, code string, status int) string {
	e, ok := errors.AsType[smithy.APIError](err)
	if !ok || status == 0 {
		return ""
	}
	text := fmt.Sprintf("%d %s", status, code)
	if m := e.ErrorMessage(); m != "" && m != code {
		text += ": " + m
	}
	return text
}

// codeOf is the code of the service's error, or empty.
func codeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// statusOf is the status of the reply that an error comes from, or 0.
func statusOf(err error) int {
	if reply := replyOf(err); reply != nil {
		return reply.StatusCode
	}
	return 0
}

// replyOf is the reply that an error comes from, or nil.
func replyOf(err error) *http.Response {
	if e, ok := errors.AsType[*awshttp.ResponseError](err); ok && e.Response != nil && e.HTTPStatusCode() != 0 {
		return e.Response.Response
	}
	return nil
}
