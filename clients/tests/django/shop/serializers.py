from rest_framework import serializers

from .models import Comment, Order, Ticket


class OrderSerializer(serializers.ModelSerializer):
    id = serializers.CharField(read_only=True)

    class Meta:
        model = Order
        fields = ["id", "note"]


class CommentSerializer(serializers.ModelSerializer):
    id = serializers.CharField(read_only=True)
    ticket = serializers.PrimaryKeyRelatedField(pk_field=serializers.CharField(), queryset=Ticket.objects)

    class Meta:
        model = Comment
        fields = ["id", "ticket"]
