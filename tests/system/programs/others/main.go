// SPDX-License-Identifier: Apache-2.0 OR MIT
// Signs with the card's key through crypto11 and verifies it with the card's public key.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"

	"github.com/ThalesIgnite/crypto11"
)

func main() {
	ctx, err := crypto11.Configure(&crypto11.Config{Path: os.Args[1], TokenLabel: "warifu", Pin: "1234"})
	if err != nil {
		panic(err)
	}
	defer ctx.Close()
	key, err := ctx.FindKeyPair(nil, []byte("client"))
	if err != nil || key == nil {
		panic(fmt.Sprint("no key: ", err))
	}
	digest := sha256.Sum256([]byte("hello"))
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		panic(err)
	}
	fmt.Println("signed:", ecdsa.VerifyASN1(key.Public().(*ecdsa.PublicKey), digest[:], signature))
}
