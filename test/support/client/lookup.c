// Prints the IPv4 and IPv6 addresses of a name as the C library that it is compiled with finds them, one a line.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;

	if (argc != 2)
		return 2;
	int error = getaddrinfo(argv[1], NULL, &hints, &found);
	if (error) {
		puts(gai_strerror(error));
		return 1;
	}
	for (struct addrinfo *each = found; each; each = each->ai_next) {
		char text[INET6_ADDRSTRLEN];
		const void *address = each->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)each->ai_addr)->sin_addr
								 : (void *)&((struct sockaddr_in6 *)each->ai_addr)->sin6_addr;
		puts(inet_ntop(each->ai_family, address, text, sizeof(text)));
	}
	return 0;
}
