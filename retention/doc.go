// Package retention keeps a mail server's message database inside its retention policy.
package retention
