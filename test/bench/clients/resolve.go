// Looks up the name in each line of its input with the resolver of Go, and prints the addresses, or the error.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		found, err := net.LookupHost(lines.Text())
		if err != nil {
			fmt.Println("error:", err)
			continue
		}
		fmt.Println(strings.Join(found, " "))
	}
}
